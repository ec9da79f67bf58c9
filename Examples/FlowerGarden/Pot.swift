package import Keepsake

/// A pot of the flower garden, some 30 KB: what is saved, and how each field is merged when two devices changed it.
@Archivable
package struct Pot {
  /// The number of cells of the soil, and of pixels of the photo, in each direction.
  package static let side = 64

  /// Merged by id: what was planted on either device is kept, what was pulled out on either is removed.
  @Merge package var flowers: [Flower] = []
  /// The height of the tallest flower that ever grew here.
  @Merge(.max) package var height = 0
  /// The day on which the first flower bloomed.
  @Merge(.min) package var firstBloom: Int?
  @Merge(.counter) package var waterings = Counter()
  /// All kinds of animals that were ever seen here.
  @Merge(.union) package var visitors: Set<String> = []
  /// The names of all who painted on the pot, with their marks.
  @Merge(.union) package var signatures: [String: String] = [:]
  /// The ornaments on the pot; one that is taken off on one device is removed.
  @Merge package var ornaments: Set<String> = []
  /// What the player wrote on each label.
  @Merge package var labels: [String: String] = [:]
  @Merge(combining: Pot.joined) package var notes = ""
  /// The type has rules of its own, so no attribute is needed here.
  package var care = Care()
  /// No rule: the change of the device that made one is kept.
  package var place = "windowsill"
  /// How wet each cell of the soil is. No rule, so it is merged as a whole: rain falls on all of it.
  package var soil = [UInt8](repeating: 128, count: side * side)
  /// How much light each cell had.
  package var light = [UInt8](repeating: 90, count: side * side)
  /// The last photo of the pot, five bytes per pixel.
  package var photo = [UInt8](repeating: 0, count: side * side * 5)

  package init() {}

  /// Creates a pot with the soil, light and photo of a game after some play: bytes that compress badly.
  package init(weather seed: UInt64) {
    var state = seed
    func next() -> UInt8 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
    for index in soil.indices { soil[index] = next() }
    for index in light.indices { light[index] = next() }
    for index in photo.indices { photo[index] = next() }
  }

  /// Joins both texts, one below the other, in the same order on every device.
  private static func joined(_ mine: String, _ theirs: String, _ ancestor: String?) -> String {
    mine == theirs ? mine : [mine, theirs].sorted().joined(separator: "\n")
  }

  package mutating func plant(_ kind: String, id: String) { flowers.append(Flower(id: id, kind: kind)) }

  package mutating func water(_ times: Int = 1) {
    waterings += times
    height += times
    for index in flowers.indices { flowers[index].height += times }
  }
}

/// A flower, identified on every device by its id.
@Archivable
package struct Flower: Identifiable {
  package let id: String
  package var kind: String
  @Merge(.max) package var height = 0

  package init(id: String, kind: String) {
    self.id = id
    self.kind = kind
  }
}

/// What was done for a pot.
@Archivable
package struct Care {
  @Merge(.max) package var lastFed = 0
  @Merge(.counter) package var weedsPulled = Counter()

  package init() {}
}
