#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInterchange

/// Compares values with what a keyed archive has of them, bit by bit. Some of its lists and dictionaries are objects.
struct KeyedValues {
  let keyed: ObjectGraph

  static func areSame(_ values: ObjectGraph, _ keyed: ObjectGraph) -> Bool {
    KeyedValues(keyed: keyed).areSame(values.root, keyed.root)
  }

  /// Recurses once per level; readers allow a few hundred.
  private func areSame(_ given: ArchiveValue, _ found: ArchiveValue) -> Bool {
    switch (Self.plain(given), resolved(Self.plain(found))) {
    case (.number(let a), .number(let b)): a.bitPattern == b.bitPattern
    case (.date(let a), .date(let b)):
      a.timeIntervalSinceReferenceDate.bitPattern == b.timeIntervalSinceReferenceDate.bitPattern
    case (.decimal(let a), .decimal(let b)): a == b || Decimal(string: a) == Decimal(string: b)
    case (.array(let a), .array(let b)), (.set(let a), .set(let b)), (.vector(let a), .array(let b)): areSame(a, b)
    case (.structure(ObjectGraph.plain, let a), .structure(ObjectGraph.plain, let b)):
      areSame(a.map(\.value), b.map(\.value)) && a.map { ExactText($0.key) } == b.map { ExactText($0.key) }
    case (.dictionary(let a), .dictionary(let b)):
      areSame(a.map(\.key), b.map(\.key)) && areSame(a.map(\.value), b.map(\.value))
    case (let a, let b): a == b
    }
  }

  private func areSame(_ given: [ArchiveValue], _ found: [ArchiveValue]) -> Bool {
    given.count == found.count && zip(given, found).allSatisfy { areSame($0, $1) }
  }

  /// Removes the marks of numbers, and what a keyed archive has no words for.
  private static func plain(_ value: ArchiveValue) -> ArchiveValue {
    if let (mark, inner, _) = ArchiveMark.unmarked(value) {
      if mark == .float, case .number(let number) = inner { return .number(Double(Float(number))) }
      return plain(inner)
    }
    return switch value {
    case .dictionary(let pairs): ObjectGraph.byName(pairs)
    case .enumeration(_, let name, let fields):
      fields.isEmpty
        ? .string(name)
        : .structure(type: ObjectGraph.plain, [.init(key: PlainForm.caseKey, value: .string(name))] + fields)
    default: value
    }
  }

  private func resolved(_ value: ArchiveValue) -> ArchiveValue {
    guard case .reference(let number) = value, keyed.objects.indices.contains(number),
      let collection = keyed.objects[number].flatMap({ KeyedWriter.collection($0.fields) })
    else { return value }
    return Self.plain(collection)
  }
}
#endif
