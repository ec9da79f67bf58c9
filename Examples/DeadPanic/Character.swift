import Keepsake

/// A square of the map.
@Archivable struct Place: Hashable {
  var x: Int
  var y: Int

  func distance(to other: Place) -> Int { abs(x - other.x) + abs(y - other.y) }
}

/// The types of characters. Saved games contain the numbers, so they never change, and new ones are added at the end.
enum CharacterType: Int, CaseIterable {
  case soldier = 1
  case walker = 2
  case brute = 3

  var maximumHealth: Int {
    switch self {
    case .soldier: 60
    case .walker: 10
    case .brute: 40
    }
  }

  /// The number of ticks from one step to the next.
  var stepTicks: Int {
    switch self {
    case .soldier: 2
    case .walker: 4
    case .brute: 6
    }
  }

  var strength: Int { self == .brute ? 6 : 2 }

  var glyph: Swift.Character {
    switch self {
    case .soldier: "@"
    case .walker: "z"
    case .brute: "Z"
    }
  }
}

/// A character on the map. Hand-written: it saves the type's number, and what differs from a new character of that
/// type. Glyph, speed and maximum health come from the type, so that after rebalancing the game, old saves have the new
/// values, too.
final class Character: Archivable {
  let type: CharacterType
  var place: Place
  var health: Int
  /// The tick of the next step.
  var nextStep: Int

  /// Creates a character. Every character of the game is created by this initialiser.
  init(type: CharacterType, at place: Place, tick: Int) {
    self.type = type
    self.place = place
    health = type.maximumHealth
    nextStep = tick + type.stepTicks
  }

  convenience init(from reader: inout ArchiveReader) throws {
    let number = try reader.decode(Int.self, forKey: "type")
    guard let type = CharacterType(rawValue: number) else {
      throw ArchiveError(
        .unknownCase, "a character of type \(number), which this game doesn't know: update the game", field: "type")
    }
    let place = try reader.decode(Place.self, forKey: "place")
    // Created as in play; then the saved values are applied.
    self.init(type: type, at: place, tick: 0)
    health = min(try reader.decode(1...1_000, forKey: "health"), type.maximumHealth)
    nextStep = try reader.decode(0...2 * Game.maximumTicks, forKey: "nextStep")
  }

  func encode(to writer: inout ArchiveWriter) throws {
    try writer.encode(type.rawValue, forKey: "type")
    try writer.encode(place, forKey: "place")
    try writer.encode(health, forKey: "health")
    try writer.encode(nextStep, forKey: "nextStep")
  }
}

/// Fire on the ground. After loading, it burns on for exactly the ticks that were left.
@Archivable struct Flame {
  var place: Place
  var ticksLeft: Int
}

/// Decoration only: never saved, and nothing depends on it.
struct Particle {
  var place: Place
  var ticksLeft: Int
}
