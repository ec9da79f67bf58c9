import Keepsake

/// A square of the map.
@Archivable struct Place: Hashable {
  var x: Int
  var y: Int

  func distance(to other: Place) -> Int { abs(x - other.x) + abs(y - other.y) }
}

/// Who takes part. The numbers stand in saved games: they never change, and new ones are added at the end.
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

  /// Ticks from one step to the next.
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

/// Somebody on the map. Saved by hand: the type's number, and what differs from a new one of that type. Glyph, speed and greatest health come
/// from the type, so that a game that is balanced anew has its new values in old saves, too.
final class Character: Archivable {
  let type: CharacterType
  var place: Place
  var health: Int
  /// The tick at which it steps next.
  var nextStep: Int

  /// The way in which every character of the game is made.
  init(type: CharacterType, at place: Place, tick: Int) {
    self.type = type
    self.place = place
    health = type.maximumHealth
    nextStep = tick + type.stepTicks
  }

  convenience init(from reader: inout ArchiveReader) throws {
    let number = try reader.decode(Int.self, forKey: "type")
    guard let type = CharacterType(rawValue: number) else {
      throw ArchiveError(.unknownCase, "a character of type \(number), which this game doesn't know: update the game", field: "type")
    }
    let place = try reader.decode(Place.self, forKey: "place")
    // As in play; then what was saved.
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

/// Fire on the ground. It burns on after a save, to the tick.
@Archivable struct Flame {
  var place: Place
  var ticksLeft: Int
}

/// Something that only looks good: never saved, and nothing depends on it.
struct Particle {
  var place: Place
  var ticksLeft: Int
}
