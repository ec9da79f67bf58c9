public import Foundation
public import Keepsake

/// The second world: strings of many scripts, dictionaries, sets, optionals, payload enums, subclasses, weak references,
/// nested structs, dates and data.
@Archivable
public struct Kingdom {
  public var name: String
  public var founded: Date
  public var treasury: [String: Int]
  public var laws: [Int: String]
  public var banners: Set<String>
  public var explored: Set<Int>
  public var towns: [Town]
  public var quests: [Quest]
  public var buildings: [Building]

  public init(
    name: String, founded: Date, treasury: [String: Int], laws: [Int: String], banners: Set<String>, explored: Set<Int>, towns: [Town],
    quests: [Quest], buildings: [Building]
  ) {
    self.name = name
    self.founded = founded
    self.treasury = treasury
    self.laws = laws
    self.banners = banners
    self.explored = explored
    self.towns = towns
    self.quests = quests
    self.buildings = buildings
  }
}

@Archivable
public struct Town: Codable, Equatable, Sendable {
  public var name: String
  public var motto: String?
  public var site: Site
  public var population: Int
  public var prices: [String: Double]
  public var guilds: Set<String>
  public var founded: Date
  public var besieged: Date?
  public var crest: Data

  public init(
    name: String, motto: String?, site: Site, population: Int, prices: [String: Double], guilds: Set<String>, founded: Date,
    besieged: Date?, crest: Data
  ) {
    self.name = name
    self.motto = motto
    self.site = site
    self.population = population
    self.prices = prices
    self.guilds = guilds
    self.founded = founded
    self.besieged = besieged
    self.crest = crest
  }
}

@Archivable
public struct Site: Codable, Equatable, Sendable {
  public var x: Double
  public var y: Double
  public var terrain: Terrain

  public init(
    x: Double, y: Double, terrain: Terrain
  ) {
    self.x = x
    self.y = y
    self.terrain = terrain
  }
}

@Archivable
public enum Terrain: String, Codable, CaseIterable, Sendable {
  case plains, forest, hills, coast, swamp
}

@Archivable
public struct Quest: Codable, Equatable, Sendable {
  public var title: String
  public var giver: String?
  public var deadline: Date?
  public var stage: Stage
  public var rewards: [Reward]
  public var isHidden: Bool

  public init(
    title: String, giver: String?, deadline: Date?, stage: Stage, rewards: [Reward], isHidden: Bool
  ) {
    self.title = title
    self.giver = giver
    self.deadline = deadline
    self.stage = stage
    self.rewards = rewards
    self.isHidden = isHidden
  }
}

@Archivable
public enum Stage: Codable, Equatable, Sendable {
  case open
  case active(since: Date, progress: Double)
  case solved(by: String, after: Int)
  case failed(reason: String?)
}

@Archivable
public enum Reward: Codable, Equatable, Sendable {
  case gold(Int)
  case item(name: String, count: Int)
  case title(String)
}

@Archivable(subclasses: [Market.self, Tower.self])
public class Building {
  public var name: String
  public var town: Int
  public var condition: Float
  public var workers: [String]
  public weak var neighbor: Building?

  public init(name: String, town: Int, condition: Float, workers: [String]) {
    self.name = name
    self.town = town
    self.condition = condition
    self.workers = workers
  }
}

@Archivable
public final class Market: Building {
  public var stock: [String: Int] = [:]
  public var owner: String?
}

@Archivable
public final class Tower: Building {
  public var height: Double = 0
  public var garrison: Int?
}
