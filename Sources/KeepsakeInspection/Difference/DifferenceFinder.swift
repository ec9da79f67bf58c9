import KeepsakeArchive

/// Traverses two archives in parallel from their roots, without recursion, and compares each pair of objects once.
struct DifferenceFinder {
  enum Side { case old, new }

  private struct Pair {
    let old: ArchiveValue
    let new: ArchiveValue
    let path: Int
  }

  let old: ArchiveInspection
  let new: ArchiveInspection
  var recorder = DifferenceRecorder()
  private var matches: ObjectMatches
  private var paths = DifferencePath()
  /// The pairs to compare next, in first-in, first-out order, so that the path to an object is the shortest.
  private var work: [Pair] = []
  /// References that stand alone in a field, such as a target. They are followed when everything in lists has been
  /// matched, because a list shows better which objects correspond.
  private var later: [Pair] = []
  private var alignmentBudget = 16_000_000
  private var openedOld: Set<Int> = []
  private var openedNew: Set<Int> = []

  init(old: ArchiveInspection, new: ArchiveInspection) {
    self.old = old
    self.new = new
    matches = ObjectMatches(old: old, new: new)
  }

  mutating func run() {
    work = [Pair(old: old.root, new: new.root, path: DifferencePath.root)]
    drain()
    // Objects that were matched by their `id`, but are reached in such different ways that they were not compared
    // together.
    for (number, partner) in matches.notCompared() where matches.isToBeCompared(number) {
      compareObjects(number, partner, path: paths.start(at: new.caption(partner)))
      drain()
    }
  }

  /// Compares all remaining pairs. Those that are done are dropped half by half, because a world can be large.
  private mutating func drain() {
    var (next, nextLater) = (0, 0)
    while true {
      if next < work.count {
        compare(work[next])
        next += 1
        if next > work.count / 2, next > 10_000 {
          work.removeFirst(next)
          next = 0
        }
      } else if nextLater < later.count {
        compare(later[nextLater])
        nextLater += 1
      } else {
        break
      }
    }
    work = []
    later = []
  }

  /// Returns the objects without a partner.
  func lone(_ side: Side) -> [ArchiveDifference.LoneObject] {
    let archive = side == .old ? old : new
    return matches.unmatched(side).compactMap { number in
      archive.objects[number].map { .init(number: number, type: archive.types[$0.type].name, fields: $0.fields) }
    }
  }

  private mutating func compare(_ pair: Pair) {
    switch (pair.old, pair.new) {
    case (.reference(let a), .reference(let b)): compareReferences(a, b, pair)
    case (.structure(_, let a), .structure(_, let b)): compareFields(a, b, path: pair.path)
    case (.enumeration(_, let a, let fields), .enumeration(_, let b, let others)) where a == b:
      compareFields(fields, others, path: pair.path)
    case (.array(let a), .array(let b)), (.vector(let a), .vector(let b)): compareLists(a, b, path: pair.path)
    case (.set(let a), .set(let b)): compareSets(a, b, path: pair.path)
    case (.dictionary(let a), .dictionary(let b)): compareDictionaries(a, b, path: pair.path)
    // An object or a dictionary, compared with its counterpart in another format.
    case (.reference(let a), .structure(_, let b)):
      guard let object = old.objects[a], mayOpen(a, .old) else {
        return record(.changed, pair.old, pair.new, pair.path)
      }
      compareFields(object.fields, b, path: pair.path)
    case (.structure(_, let a), .reference(let b)):
      guard let object = new.objects[b], mayOpen(b, .new) else {
        return record(.changed, pair.old, pair.new, pair.path)
      }
      compareFields(a, object.fields, path: pair.path)
    case (.dictionary(let a), .structure(_, let b)):
      guard let a = Self.fields(a) else { return record(.changed, pair.old, pair.new, pair.path) }
      compareFields(a, b, path: pair.path)
    case (.structure(_, let a), .dictionary(let b)):
      guard let b = Self.fields(b) else { return record(.changed, pair.old, pair.new, pair.path) }
      compareFields(a, b, path: pair.path)
    case (.set(let a), .array(let b)), (.array(let a), .set(let b)): compareSets(a, b, path: pair.path)
    case (.array(let a), .vector(let b)), (.vector(let a), .array(let b)): compareLists(a, b, path: pair.path)
    default: if !Self.isSame(pair.old, pair.new) { record(.changed, pair.old, pair.new, pair.path) }
    }
  }

  /// Compares values that contain no others. A number is the same whatever type it was saved as.
  private static func isSame(_ a: ArchiveValue, _ b: ArchiveValue) -> Bool {
    switch (a, b) {
    case (.integer(let x), .number(let y)), (.number(let y), .integer(let x)): Int64(exactly: y) == x
    case (.unsigned(let x), .number(let y)), (.number(let y), .unsigned(let x)): UInt64(exactly: y) == x
    default: a.childCount == nil && a.agrees(with: b)
    }
  }

  /// Returns whether an object may be compared with a value that isn't an object. Always if the other file has no
  /// objects, which terminates; otherwise once, because objects of both sides could refer to each other forever.
  private mutating func mayOpen(_ number: Int, _ side: Side) -> Bool {
    if (side == .old ? new : old).objects.isEmpty { return true }
    return side == .old ? openedOld.insert(number).inserted : openedNew.insert(number).inserted
  }

  /// Returns a dictionary's values by their keys, if all keys are texts.
  private static func fields(_ pairs: [ArchiveValue.Pair]) -> [ArchiveValue.Field]? {
    var fields: [ArchiveValue.Field] = []
    for pair in pairs {
      guard case .string(let key) = pair.key else { return nil }
      fields.append(.init(key: key, value: pair.value))
    }
    return fields
  }

  // MARK: Objects

  private mutating func compareReferences(_ a: Int, _ b: Int, _ pair: Pair) {
    guard matches.match(a, b) else { return record(.changed, pair.old, pair.new, pair.path) }
    guard matches.isToBeCompared(a) else { return }
    let isLong = paths.isLong(pair.path)
    compareObjects(a, b, path: isLong ? paths.start(at: new.caption(b)) : pair.path)
  }

  private mutating func compareObjects(_ a: Int, _ b: Int, path: Int) {
    matches.markCompared(a)
    guard let before = old.objects[a], let after = new.objects[b] else { return }
    compareFields(before.fields, after.fields, path: path)
  }

  // MARK: What has others inside

  private mutating func compareFields(_ a: [ArchiveValue.Field], _ b: [ArchiveValue.Field], path: Int) {
    var pairs: [Alignment.Pair]
    if a.count == b.count, zip(a, b).allSatisfy({ $0.key == $1.key }) {
      pairs = a.indices.map { Alignment.Pair(old: $0, new: $0) }
    } else {
      pairs = Alignment.byKey(a.map(\.key), b.map(\.key))
    }
    for (order, pair) in pairs.enumerated() {
      let (before, after) = (pair.old.map { a[$0] }, pair.new.map { b[$0] })
      let key = after?.key ?? before?.key ?? ""
      push(before?.value, after?.value, .field(key), order, path, mayWait: true)
    }
  }

  private mutating func compareLists(_ a: [ArchiveValue], _ b: [ArchiveValue], path: Int) {
    if let (before, after) = matches.identities(of: a, b) {
      let pairs = Alignment.byKey(before, after)
      let positions = pairs.compactMap { pair in pair.new == nil ? nil : pair.old }
      if zip(positions, positions.dropFirst()).contains(where: { $0 > $1 }) { record(.reordered, nil, nil, path) }
      return pushElements(pairs, a, b, path)
    }
    var keys = [(a.map { matches.fingerprint(of: $0, .old) }, b.map { matches.fingerprint(of: $0, .new) })]
    if keys[0].0 != keys[0].1, !a.allSatisfy(\.isPlainNumber) {
      keys.append((a.map { matches.outline(of: $0, .old) }, b.map { matches.outline(of: $0, .new) }))
    }
    pushElements(Alignment.inOrder(keys, budget: &alignmentBudget), a, b, path)
  }

  private mutating func compareSets(_ a: [ArchiveValue], _ b: [ArchiveValue], path: Int) {
    if let (before, after) = matches.identities(of: a, b) {
      return pushElements(Alignment.byKey(before, after), a, b, path)
    }
    let before = a.map { matches.fingerprint(of: $0, .old) }
    let after = b.map { matches.fingerprint(of: $0, .new) }
    pushElements(Alignment.byKey(before, after), a, b, path)
  }

  private mutating func pushElements(_ pairs: [Alignment.Pair], _ a: [ArchiveValue], _ b: [ArchiveValue], _ path: Int) {
    for (order, pair) in pairs.enumerated() {
      push(pair.old.map { a[$0] }, pair.new.map { b[$0] }, .element(old: pair.old, new: pair.new), order, path)
    }
  }

  private mutating func compareDictionaries(_ a: [ArchiveValue.Pair], _ b: [ArchiveValue.Pair], path: Int) {
    let pairs = Alignment.byKey(
      a.map { matches.fingerprint(of: $0.key, .old) }, b.map { matches.fingerprint(of: $0.key, .new) })
    for (order, pair) in pairs.enumerated() {
      let (before, after) = (pair.old.map { a[$0] }, pair.new.map { b[$0] })
      let archive = after == nil ? old : new
      let line = ValueLine(longest: 50, characters: 100, typeName: archive.typeName, reference: archive.caption)
      let step = DifferencePath.Step.key((after?.key ?? before?.key).map { line.text($0) } ?? "")
      push(before?.value, after?.value, step, order, path)
      // Keys that are objects, or contain some, may differ in what their fingerprints leave out.
      if let before, let after { push(before.key, after.key, step, order, path) }
    }
  }

  /// Compares values that contain no others immediately, and queues the rest.
  private mutating func push(
    _ before: ArchiveValue?, _ after: ArchiveValue?, _ step: DifferencePath.Step, _ order: Int, _ parent: Int,
    mayWait: Bool = false
  ) {
    guard let before else {
      if let after { record(.added, nil, after, paths.append(step, order: order, to: parent)) }
      return
    }
    guard let after else { return record(.removed, before, nil, paths.append(step, order: order, to: parent)) }
    if case .reference(let a) = before, case .reference(let b) = after {
      if matches.areMatched(a, b), !matches.isToBeCompared(a) { return }
      let pair = Pair(old: before, new: after, path: paths.append(step, order: order, to: parent))
      if mayWait { return later.append(pair) }
      // Matched immediately, before an object that one of them refers to is matched differently.
      guard matches.match(a, b) else { return record(.changed, before, after, pair.path) }
      work.append(pair)
    } else if !Self.isSame(before, after) {
      work.append(Pair(old: before, new: after, path: paths.append(step, order: order, to: parent)))
    }
  }

  // MARK: Telling

  private mutating func record(
    _ kind: ArchiveDifference.Change.Kind, _ before: ArchiveValue?, _ after: ArchiveValue?, _ path: Int
  ) {
    let (old, new) = (old, new)
    recorder.add(path, in: paths) { text in
      var (was, becomes) = (before.map { old.line($0) }, after.map { new.line($0) })
      if was == becomes, let before, let after, let texts = Contrast.texts(before, after) { (was, becomes) = texts }
      return ArchiveDifference.Change(kind: kind, path: text, old: before, new: after, oldText: was, newText: becomes)
    }
  }
}

extension ArchiveValue {
  /// Whether the outline of the value covers all of it.
  fileprivate var isPlainNumber: Bool {
    if case .reference = self { return false }
    return childCount == nil
  }
}

extension ArchiveInspection {
  /// The maximum length of a value in a list of changes.
  private static let lineCharacters = 160

  /// Returns a value on one line; for an object, its fields.
  func line(_ value: ArchiveValue) -> String {
    let line = ValueLine(longest: 50, characters: Self.lineCharacters, typeName: typeName, reference: caption)
    if case .reference(let number) = value, objects.indices.contains(number), let object = objects[number] {
      return "#\(number) " + line.text(.structure(type: object.type, object.fields))
    }
    return line.text(value)
  }
}
