import GRDB
import Keepsake

/// A record of about a hundred bytes, as a game keeps many of: what was met where and when.
@Archivable
struct Creature: Codable, Equatable, Sendable {
  var id = 0
  var name = ""
  var species = ""
  var x = 0.0
  var y = 0.0
  var health = 0
  /// Seconds since 1970.
  var seen = 0
  var note = ""

  private static let species = ["owl", "wolf", "salamander", "badger", "heron", "stag beetle"]
  private static let words = ["met", "by", "the", "river", "at", "dawn", "and", "fed", "twice", "shy", "of", "torches"]
  /// One is met each minute.
  static let seconds = 60
  static let begin = 1_700_000_000

  /// The same for a number, in every run.
  init(number: Int) {
    id = number
    var state = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15
    func next(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % bound
    }
    species = Self.species[next(Self.species.count)]
    name = "\(species) \(number)"
    (x, y) = (Double(next(1 << 20)) / 16, Double(next(1 << 20)) / 16)
    health = next(120)
    seen = Self.begin + number * Self.seconds
    note = (0..<8).map { _ in Self.words[next(Self.words.count)] }.joined(separator: " ")
  }

  static func all(_ count: Int) -> [Creature] { (0..<count).map(Creature.init(number:)) }
}

/// The root of a file.
@Archivable
struct Herd: Codable, Equatable, Sendable {
  var creatures: [Creature] = []
}

extension Creature: FetchableRecord {
  static let columns = "id, name, species, x, y, health, seen, note"

  /// In the order of `columns`.
  init(row: Row) {
    self.init(
      id: row[0], name: row[1], species: row[2], x: row[3], y: row[4], health: row[5], seen: row[6], note: row[7])
  }

  private init(id: Int, name: String, species: String, x: Double, y: Double, health: Int, seen: Int, note: String) {
    (self.id, self.name, self.species, self.x, self.y) = (id, name, species, x, y)
    (self.health, self.seen, self.note) = (health, seen, note)
  }

  var arguments: StatementArguments { [id, name, species, x, y, health, seen, note] }
}
