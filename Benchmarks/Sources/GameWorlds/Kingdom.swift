import Foundation
import Keepsake

/// The second world: strings of many scripts, dictionaries, sets, optionals, payload enums, subclasses, weak
/// references, nested structs, dates and data.
@Archivable
struct Kingdom {
  var name: String
  var founded: Date
  var treasury: [String: Int]
  var laws: [Int: String]
  var banners: Set<String>
  var explored: Set<Int>
  var towns: [Town]
  var quests: [Quest]
  var buildings: [Building]
}

@Archivable
struct Town: Codable, Equatable, Sendable {
  var name: String
  var motto: String?
  var site: Site
  var population: Int
  var prices: [String: Double]
  var guilds: Set<String>
  var founded: Date
  var besieged: Date?
  var crest: Data
}

@Archivable
struct Site: Codable, Equatable, Sendable {
  var x: Double
  var y: Double
  var terrain: Terrain
}

@Archivable
enum Terrain: String, Codable, CaseIterable, Sendable {
  case plains, forest, hills, coast, swamp
}

@Archivable
struct Quest: Codable, Equatable, Sendable {
  var title: String
  var giver: String?
  var deadline: Date?
  var stage: Stage
  var rewards: [Reward]
  var isHidden: Bool
}

@Archivable
enum Stage: Codable, Equatable, Sendable {
  case open
  case active(since: Date, progress: Double)
  case solved(by: String, after: Int)
  case failed(reason: String?)
}

@Archivable
enum Reward: Codable, Equatable, Sendable {
  case gold(Int)
  case item(name: String, count: Int)
  case title(String)
}

@Archivable(subclasses: [Market.self, Tower.self])
class Building {
  var name: String
  var town: Int
  var condition: Float
  var workers: [String]
  weak var neighbor: Building?

  init(name: String, town: Int, condition: Float, workers: [String]) {
    self.name = name
    self.town = town
    self.condition = condition
    self.workers = workers
  }
}

@Archivable
final class Market: Building {
  var stock: [String: Int] = [:]
  var owner: String?
}

@Archivable
final class Tower: Building {
  var height: Double = 0
  var garrison: Int?
}
