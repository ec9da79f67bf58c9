import Keepsake

/// A night among the dead: soldiers with flame throwers, and what comes out of the graves.
///
/// A saved game has the level's name and what differs from the level's beginning: not the map, not the list of events
/// (the number of remaining ones is enough), not what is only drawn. Loading a game begins the level and adds
/// everything by the calls that are also used in play.
final class Game: Archivable {
  /// The maximum length of a night, and of every counter.
  static let maximumTicks = 10_000

  let level: Level
  private(set) var tick = 0
  private(set) var characters: [Character] = []
  private(set) var flames: [Flame] = []
  private(set) var kills = 0
  private var dice: Dice
  /// How many of the level's events have happened.
  private var pastEvents = 0

  private(set) var particles: [Particle] = []
  /// The character on each square; derived from the characters.
  private var occupants: [Place: Character] = [:]

  init(level: Level, seed: UInt64) {
    self.level = level
    dice = Dice(state: seed)
    for place in level.soldiers { add(Character(type: .soldier, at: place, tick: 0)) }
  }

  /// Creates a game in a level with nobody in it yet.
  private init(emptyLevel level: Level, dice: Dice) {
    self.level = level
    self.dice = dice
  }

  // MARK: Saving

  /// The classes of the objects that a saved game may have.
  static var archiveSubclasses: [any Archivable.Type] { [Character.self] }

  func encode(to writer: inout ArchiveWriter) throws {
    try writer.encode(level.name, forKey: "level")
    try writer.encode(tick, forKey: "tick")
    try writer.encode(level.events.count - pastEvents, forKey: "eventsLeft")
    try writer.encode(characters, forKey: "characters")
    try writer.encode(flames, forKey: "flames")
    try writer.encode(kills, forKey: "kills")
    try writer.encode(dice, forKey: "dice")
  }

  convenience init(from reader: inout ArchiveReader) throws {
    let name = try reader.decode(String.self, forKey: "level")
    guard let level = Level.named(name) else {
      throw ArchiveError(.mismatch, "the level \"\(name.prefix(40))\" isn't in this game", field: "level")
    }
    self.init(emptyLevel: level, dice: try reader.decode(Dice.self, forKey: "dice"))
    tick = try reader.decode(0...Self.maximumTicks, forKey: "tick")
    // If events were added at the end of the level, they will still happen.
    pastEvents = level.events.count - (try reader.decode(0...level.events.count, forKey: "eventsLeft"))
    for character in try reader.decode([Character].self, forKey: "characters") {
      guard add(character) else {
        throw ArchiveError(.mismatch, "two characters are on one square, or one is in a wall", field: "characters")
      }
    }
    flames = try reader.decode([Flame].self, forKey: "flames").filter { level.isOpen($0.place) }
    kills = try reader.decode(0...Self.maximumTicks, forKey: "kills")
  }

  // MARK: Playing

  var soldiers: [Character] { characters.filter { $0.type == .soldier } }
  private var dead: [Character] { characters.filter { $0.type != .soldier } }

  var eventsLeft: Int { level.events.count - pastEvents }

  /// Nil while the game goes on.
  var outcome: String? {
    if soldiers.isEmpty { return "The dead have won." }
    return eventsLeft == 0 && dead.isEmpty ? "The night is over." : nil
  }

  /// Adds a character, in play or from a saved game. If its square isn't free, returns false and changes nothing.
  @discardableResult
  func add(_ character: Character) -> Bool {
    guard level.isOpen(character.place), occupants[character.place] == nil else { return false }
    characters.append(character)
    occupants[character.place] = character
    return true
  }

  func step() {
    tick += 1
    if pastEvents < level.events.count, level.events[pastEvents].tick <= tick {
      for arrival in level.events[pastEvents].arrivals { arrive(arrival.type, near: arrival.at) }
      pastEvents += 1
    }
    burn()
    for character in characters where character.health > 0 && character.nextStep <= tick {
      character.nextStep = tick + character.type.stepTicks
      if character.type == .soldier { defend(character) } else { hunt(character) }
    }
    bury()
    // Sparks, for decoration only.
    particles = particles.compactMap { $0.ticksLeft > 1 ? Particle(place: $0.place, ticksLeft: $0.ticksLeft - 1) : nil }
    particles += flames.map { Particle(place: Place(x: $0.place.x, y: $0.place.y - 1), ticksLeft: 2) }
  }

  private func arrive(_ type: CharacterType, near place: Place) {
    for radius in 0..<6 {
      for y in -radius...radius {
        for x in -radius...radius
        where add(Character(type: type, at: Place(x: place.x + x, y: place.y + y), tick: tick)) { return }
      }
    }
  }

  private func burn() {
    for flame in flames { occupants[flame.place]?.health -= 2 }
    flames = flames.compactMap { $0.ticksLeft > 1 ? Flame(place: $0.place, ticksLeft: $0.ticksLeft - 1) : nil }
  }

  private func defend(_ soldier: Character) {
    guard let nearest = nearest(to: soldier, dead) else { return }
    let distance = soldier.place.distance(to: nearest.place)
    if distance <= 4, dice.roll(6) > 2 {
      flames.append(Flame(place: nearest.place, ticksLeft: 8 + dice.roll(6)))
    } else {
      move(soldier, distance <= 3 ? .away : .toward, nearest)
    }
  }

  private func hunt(_ hunter: Character) {
    guard let prey = nearest(to: hunter, soldiers) else { return }
    if hunter.place.distance(to: prey.place) == 1 {
      prey.health -= hunter.type.strength
    } else {
      move(hunter, .toward, prey)
    }
  }

  private func nearest(to character: Character, _ others: [Character]) -> Character? {
    others.filter { $0.health > 0 }.min { left, right in
      (left.place.distance(to: character.place), left.place.y, left.place.x)
        < (right.place.distance(to: character.place), right.place.y, right.place.x)
    }
  }

  private enum Direction { case toward, away }

  private func move(_ character: Character, _ direction: Direction, _ other: Character) {
    let place = character.place
    var steps = [(1, 0), (-1, 0), (0, 1), (0, -1)].map { Place(x: place.x + $0.0, y: place.y + $0.1) }
    // The order of directions is random, and sometimes the step is, too, so that nobody is stuck behind a wall forever.
    let first = dice.roll(4) % 4
    steps = Array(steps[first...] + steps[..<first]).filter { level.isOpen($0) && occupants[$0] == nil }
    let best =
      dice.roll(3) == 1
      ? steps.first
      : steps.min { left, right in
        let (a, b) = (left.distance(to: other.place), right.distance(to: other.place))
        return direction == .away ? a > b : a < b
      }
    guard let best else { return }
    occupants[place] = nil
    character.place = best
    occupants[best] = character
  }

  private func bury() {
    for character in characters where character.health <= 0 {
      occupants[character.place] = nil
      if character.type != .soldier { kills += 1 }
    }
    characters.removeAll { $0.health <= 0 }
  }
}

extension ArchiveReader {
  /// Reads a saved number and checks its range, because somebody may have edited it.
  mutating func decode(_ range: ClosedRange<Int>, forKey key: String) throws -> Int {
    let number = try decode(Int.self, forKey: key)
    guard range.contains(number) else {
      throw ArchiveError(.mismatch, "\(number) is not between \(range.lowerBound) and \(range.upperBound)", field: key)
    }
    return number
  }
}

/// Dice whose state can be saved: after loading, they roll the same numbers as without saving.
@Archivable struct Dice {
  private var state: UInt64

  init(state: UInt64) { self.state = state }

  /// Returns a number from 1 to `sides`. (SplitMix64, Steele, Lea and Flood 2014.)
  mutating func roll(_ sides: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((mixed ^ (mixed >> 31)) % UInt64(max(sides, 1))) + 1
  }
}
