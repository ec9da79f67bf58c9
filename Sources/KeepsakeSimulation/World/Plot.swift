package import Keepsake

/// What the games of a world save as documents: each rule of merging, on a field whose right value an observer can tell.
///
/// Whatever is done to a document has a number, so that nothing is done twice.
@Archivable
package struct Plot {
  /// The numbers of all that was done.
  @Merge(.union) package var deeds: Set<Int> = []
  @Merge(.counter) package var waterings = Counter()
  @Merge(.max) package var height = 0
  @Merge(.min) package var firstBloom: Int?
  /// By the deed that hung them up.
  @Merge package var ornaments: Set<Int> = []
  /// By the deed that planted them.
  @Merge package var flowers: [PlotFlower] = []
  /// The deed that wrote each.
  @Merge package var labels: [String: Int] = [:]
  @Merge(combining: Plot.joined) package var notes: [Int] = []
  /// The deed that moved it. No rule: the change of the side that made one.
  package var place = 0

  package init() {}

  /// All notes of both, those of the better side first: what another order of the sides makes another document of.
  private static func joined(_ mine: [Int], _ theirs: [Int], _ ancestor: [Int]?) -> [Int] {
    mine + theirs.filter { !mine.contains($0) }
  }
}

/// Planted in a ``Plot``.
@Archivable
package struct PlotFlower: Identifiable {
  package let id: Int
  @Merge(.max) package var height = 0

  package init(id: Int) { self.id = id }
}

extension Plot {
  /// What another one has otherwise, in words.
  func differences(from other: Plot) -> [String] {
    var words: [String] = []
    func compare<Value: Equatable>(_ name: String, _ mine: Value, _ theirs: Value) {
      if mine != theirs { words.append("\(name) \(mine), not \(theirs)") }
    }
    compare("deeds", deeds.sorted(), other.deeds.sorted())
    compare("waterings", waterings, other.waterings)
    compare("height", height, other.height)
    compare("firstBloom", firstBloom, other.firstBloom)
    compare("ornaments", ornaments.sorted(), other.ornaments.sorted())
    compare("flowers", flowers.map(\.id), other.flowers.map(\.id))
    compare("labels", labels, other.labels)
    compare("notes", notes, other.notes)
    compare("place", place, other.place)
    return words
  }

  /// Does one thing, and remembers that.
  mutating func apply(_ deed: Model.Deed.Kind, number: Int) {
    deeds.insert(number)
    notes.append(number)
    switch deed {
    case .water(let times): waterings += times
    case .grow(let height): self.height = max(self.height, height)
    case .bloom(let day): firstBloom = min(firstBloom ?? .max, day)
    case .hang: ornaments.insert(number)
    case .takeOff(let ornament): ornaments.remove(ornament)
    case .plant: flowers.append(PlotFlower(id: number))
    case .pull(let flower): flowers.removeAll { $0.id == flower }
    case .label(let name): labels[name] = number
    case .move: place = number
    }
  }
}
