/// Merges two arrays of identified elements against their common ancestor.
///
/// The order is this side's, unless only the other side moved elements. An element that the other side inserted goes
/// behind the element that it followed there, after anything that this side inserted at the same position. Costs a
/// table of ids for each array, and an encoding of each element whose type has no rules.
struct ElementMerge<Element: Archivable & Identifiable> {
  /// A game may use the same id twice. The second occurrence counts as a different element, so that none is lost.
  private struct Key: Hashable {
    var id: Element.ID
    var repetition: Int
  }
  private struct List {
    var keys: [Key] = []
    var elements: [Key: Element] = [:]

    init(_ elements: [Element]) {
      var count: [Element.ID: Int] = [:]
      keys.reserveCapacity(elements.count)
      for element in elements {
        let key = Key(id: element.id, repetition: count[element.id, default: 0])
        count[element.id] = key.repetition + 1
        keys.append(key)
        self.elements[key] = element
      }
    }

    func has(_ key: Key) -> Bool { elements[key] != nil }
  }

  private let mine: List
  private let theirs: List
  private let ancestor: List?

  init(mine: [Element], theirs: [Element], ancestor: [Element]?) {
    self.mine = List(mine)
    self.theirs = List(theirs)
    if let ancestor { self.ancestor = List(ancestor) } else { self.ancestor = nil }
  }

  func result() -> [Element] {
    let kept = keptElements()
    let (first, second) = isMovedThereOnly ? (theirs, mine) : (mine, theirs)
    // What only the second list has, keyed by the element of both lists that it follows; nil if it comes before the
    // first of them.
    var inserted: [Key?: [Element]] = [:]
    var place: Key?
    for key in second.keys {
      if first.has(key) { place = key } else if let element = kept[key] { inserted[place, default: []].append(element) }
    }
    var result: [Element] = []
    result.reserveCapacity(kept.count)
    place = nil
    for key in first.keys {
      if second.has(key) {
        result += inserted[place] ?? []
        place = key
      }
      if let element = kept[key] { result.append(element) }
    }
    return result + (inserted[place] ?? [])
  }

  private func keptElements() -> [Key: Element] {
    var kept: [Key: Element] = [:]
    for key in mine.keys {
      guard let element = mine.elements[key] else { continue }
      let old = ancestor?.elements[key]
      if let other = theirs.elements[key] {
        var merged = element
        MergeFields.unmarked(&merged, other, old)
        kept[key] = merged
      } else if old.map({ !MergeFields.isSame(element, $0) }) ?? true {
        kept[key] = element
      }
    }
    for key in theirs.keys where !mine.has(key) {
      guard let element = theirs.elements[key] else { continue }
      if ancestor?.elements[key].map({ !MergeFields.isSame(element, $0) }) ?? true { kept[key] = element }
    }
    return kept
  }

  /// Whether only the other side changed the order of the elements that all three lists have.
  private var isMovedThereOnly: Bool {
    guard let ancestor else { return false }
    func order(_ list: List) -> [Key] { list.keys.filter { mine.has($0) && theirs.has($0) && ancestor.has($0) } }
    let old = order(ancestor)
    return order(mine) == old && order(theirs) != old
  }
}
