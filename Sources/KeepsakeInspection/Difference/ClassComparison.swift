/// Compares the classes of two files' objects, where both have a value.
///
/// Elements of lists are compared by their position; of lists of different lengths, from both ends as long as they have
/// the same classes. Takes time in proportion to both files: what is below two values is compared when one of them is
/// met for the first time.
struct ClassComparison {
  private struct Pair: Hashable {
    var old: Int
    var new: Int
  }

  private let old: SavedClasses
  private let new: SavedClasses
  private(set) var changes: [ArchiveDifference.ClassChange] = []

  init(from old: SavedClasses, to new: SavedClasses) {
    (self.old, self.new) = (old, new)
    var (metOld, metNew): (Set<Int>, Set<Int>) = ([SavedClasses.leaf], [SavedClasses.leaf])
    var told: Set<Pair> = []
    var work = [(pair: Pair(old: old.root, new: new.root), path: "")]
    while let (pair, path) = work.popLast() {
      let (was, now) = (old.name(pair.old), new.name(pair.new))
      if Self.differs(was, now), told.insert(pair).inserted {
        changes.append(.init(path: SavedClasses.shown(path), old: was, new: now))
      }
      let isFirst = (metOld.insert(pair.old).inserted, metNew.insert(pair.new).inserted)
      guard isFirst.0 || isFirst.1 else { continue }
      for (below, label, index) in children(pair).reversed() {
        work.append((below, SavedClasses.path(path, label, index)))
      }
    }
  }

  private static func differs(_ old: SavedClasses.Name?, _ new: SavedClasses.Name?) -> Bool {
    guard let old, let new else { return (old ?? new).map { !$0.isOfValue } ?? false }
    guard old.name == new.name else { return !(old.isImplied && new.isImplied) }
    guard let above = old.superclasses, let other = new.superclasses else { return false }
    return above != other
  }

  private func children(_ pair: Pair) -> [(pair: Pair, label: String, index: Int)] {
    let (a, b) = (old.nodes[pair.old], new.nodes[pair.new])
    var elements = (a.children.filter(\.label.isEmpty).map(\.node), b.children.filter(\.label.isEmpty).map(\.node))
    if a.isSet, b.isSet { elements = (sorted(elements.0, old), sorted(elements.1, new)) }
    let labelled = Dictionary(
      b.children.lazy.filter { !$0.label.isEmpty }.map { ($0.label, $0.node) }, uniquingKeysWith: { $1 })
    return aligned(elements.0, elements.1)
      + a.children.compactMap { child in
        child.label.isEmpty ? nil : labelled[child.label].map { (Pair(old: child.node, new: $0), child.label, 0) }
      }
  }

  private func sorted(_ nodes: [Int], _ classes: SavedClasses) -> [Int] {
    nodes.map { ($0, classes.name($0)?.name ?? "") }.sorted { $0.1 < $1.1 }.map(\.0)
  }

  private func aligned(_ a: [Int], _ b: [Int]) -> [(pair: Pair, label: String, index: Int)] {
    func both(_ i: Int, _ j: Int) -> (pair: Pair, label: String, index: Int) { (Pair(old: a[i], new: b[j]), "", j) }
    func isAlike(_ i: Int, _ j: Int) -> Bool { old.name(a[i])?.name == new.name(b[j])?.name }
    guard a.count != b.count else { return a.indices.map { both($0, $0) } }
    let common = min(a.count, b.count)
    let start = (0..<common).prefix { isAlike($0, $0) }.count
    let end = (0..<common - start).prefix { isAlike(a.count - 1 - $0, b.count - 1 - $0) }.count
    return (0..<start).map { both($0, $0) }
      + (0..<end).reversed().map { both(a.count - 1 - $0, b.count - 1 - $0) }
  }
}

extension ArchiveDifference {
  /// Two objects, or an object and a value, at the same place that are of different classes.
  package struct ClassChange: Sendable, Equatable {
    package var path: String
    /// Nil for a value without a class.
    package var old: SavedClasses.Name?
    package var new: SavedClasses.Name?

    /// The two classes on one line, with those above them if only these differ.
    package var text: String {
      let isAbove = old?.name == new?.name
      func words(_ name: SavedClasses.Name?) -> String {
        guard let name else { return "none" }
        let above = (name.superclasses ?? []).map { PrintableText.name($0) }.joined(separator: ", ")
        return PrintableText.name(name.name) + (isAbove ? " (\(above))" : "")
      }
      return "class \(words(old)) -> \(words(new))"
    }
  }

  /// Compares the classes, too.
  ///
  /// - Parameter perKind: The maximum number of changes listed of one class to one other. The others are counted.
  package mutating func compareClasses(of old: ArchiveInspection, and new: ArchiveInspection, perKind: Int = 100) {
    // Archives have their types compared, and other files without classes have nothing to compare.
    guard old.savedClasses != nil || new.savedClasses != nil else {
      classes = []
      return
    }
    var counts: [String: Int] = [:]
    var listed: [ClassChange] = []
    for change in ClassComparison(from: old.classes, to: new.classes).changes {
      counts[change.text, default: 0] += 1
      if counts[change.text, default: 0] <= perKind { listed.append(change) }
    }
    classes = listed
    omittedClasses = counts.filter { $0.value > perKind }.map { .init(pattern: $0.key, count: $0.value - perKind) }
      .sorted { $0.pattern < $1.pattern }
  }
}

extension JSONWriter {
  mutating func value(_ name: SavedClasses.Name) {
    beginObject()
    members(of: name)
    end()
  }

  /// - Parameter path: Where the object is; nil if that isn't written.
  mutating func members(of name: SavedClasses.Name, at path: String? = nil) {
    key("class")
    value(name.name)
    if let path {
      key("path")
      value(path)
    }
    guard let superclasses = name.superclasses else { return }
    key("superclasses")
    beginArray()
    for above in superclasses { value(above) }
    end()
  }

  mutating func value(_ change: ArchiveDifference.ClassChange) {
    beginObject()
    for (side, name) in [("new", change.new), ("old", change.old)] {
      guard let name else { continue }
      key(side)
      value(name)
    }
    key("path")
    value(change.path)
    end()
  }
}
