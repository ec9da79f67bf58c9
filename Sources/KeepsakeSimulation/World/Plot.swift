package import Keepsake

/// What the games of a world save as documents: every rule of merging, each on a field whose correct value an observer
/// can derive.
///
/// Every deed (a change of a document) has a number, so that none is done twice.
@Archivable
package struct Plot {
  /// The numbers of all deeds.
  @Merge(.union) package var deeds: Set<Int> = []
  @Merge(.counter) package var waterings = Counter()
  @Merge(.max) package var height = 0
  @Merge(.min) package var firstBloom: Int?
  /// The numbers of the deeds that hung them up.
  @Merge package var ornaments: Set<Int> = []
  /// Identified by the deeds that planted them.
  @Merge package var flowers: [PlotFlower] = []
  /// The number of the deed that wrote each label.
  @Merge package var labels: [String: Int] = [:]
  @Merge(combining: Plot.joined) package var notes: [Int] = []
  /// The number of the deed that moved it. Without a rule: the side that changed it wins.
  package var place = 0

  package init() {}

  /// Returns all notes of both sides, those of the better side first, so that another order of the sides results in
  /// another document.
  private static func joined(_ mine: [Int], _ theirs: [Int], _ ancestor: [Int]?) -> [Int] {
    mine + theirs.filter { !mine.contains($0) }
  }
}

/// A flower that was planted in a ``Plot``.
@Archivable
package struct PlotFlower: Identifiable {
  package let id: Int
  @Merge(.max) package var height = 0

  package init(id: Int) { self.id = id }
}

extension Plot {
  /// Describes in words how this document differs from another.
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

  /// Does one deed, and records its number.
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
