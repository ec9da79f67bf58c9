import KeepsakeArchive

/// Compares the declarations with which two archives were written: types by name, fields and cases by key.
struct TypeComparison {
  let old: ArchiveInspection
  let new: ArchiveInspection

  var changes: [ArchiveDifference.TypeChange] {
    var changes: [ArchiveDifference.TypeChange] = []
    if old.header.rootType != new.header.rootType {
      changes.append(.init(kind: .root, type: new.header.rootType, old: old.header.rootType, new: new.header.rootType))
    }
    for (before, after) in matched(old.types, new.types, key: \.name) {
      switch (before, after) {
      case (let before?, let after?): compare(before, after, &changes)
      case (let before?, nil): changes.append(.init(kind: .typeRemoved, type: before.name))
      case (nil, let after?): changes.append(.init(kind: .typeAdded, type: after.name))
      case (nil, nil): break
      }
    }
    return changes
  }

  private func compare(
    _ before: ArchiveInspection.TypeDescription, _ after: ArchiveInspection.TypeDescription,
    _ changes: inout [ArchiveDifference.TypeChange]
  ) {
    if before.kind != after.kind {
      changes.append(.init(kind: .kind, type: after.name, old: before.kind.rawValue, new: after.kind.rawValue))
    }
    if before.version != after.version {
      changes.append(.init(kind: .version, type: after.name, old: "\(before.version)", new: "\(after.version)"))
    }
    compare(before.fields, after.fields, in: after.name, prefix: "", &changes)
    for (one, other) in matched(before.cases, after.cases, key: \.name) {
      switch (one, other) {
      case (let one?, let other?): compare(one.fields, other.fields, in: after.name, prefix: one.name + ".", &changes)
      case (let one?, nil): changes.append(.init(kind: .caseRemoved, type: after.name, member: one.name))
      case (nil, let other?): changes.append(.init(kind: .caseAdded, type: after.name, member: other.name))
      case (nil, nil): break
      }
    }
  }

  private func compare(
    _ before: [ArchiveInspection.Field], _ after: [ArchiveInspection.Field], in type: String, prefix: String,
    _ changes: inout [ArchiveDifference.TypeChange]
  ) {
    for (one, other) in matched(before, after, key: \.key) {
      switch (one, other) {
      case (let one?, let other?):
        if one.type != other.type {
          changes.append(.init(kind: .fieldType, type: type, member: prefix + one.key, old: one.type, new: other.type))
        }
      case (let one?, nil):
        changes.append(.init(kind: .fieldRemoved, type: type, member: prefix + one.key, old: one.type))
      case (nil, let other?):
        changes.append(.init(kind: .fieldAdded, type: type, member: prefix + other.key, new: other.type))
      case (nil, nil): break
      }
    }
  }

  /// Pairs elements with equal keys, the first with the first and so on: first all of `old`, then those that only `new`
  /// has.
  private func matched<T>(_ old: [T], _ new: [T], key: (T) -> String) -> [(T?, T?)] {
    let pairs = Alignment.byKey(old.map(key), new.map(key))
    return pairs.map { ($0.old.map { old[$0] }, $0.new.map { new[$0] }) }.filter { $0.0 != nil }
      + pairs.filter { $0.old == nil }.map {
        (nil, $0.new.map { new[$0] })
      }
  }
}
