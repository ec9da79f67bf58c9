import Foundation
import SwiftProtobuf

/// The kingdom as a message of swift-protobuf, made before the clock starts; what is decoded stays a message.
struct MessageKingdom: Sendable {
  private let message: ProtoKingdom

  private init(message: ProtoKingdom) { self.message = message }

  init(_ kingdom: Kingdom) {
    message = .with {
      $0.name = kingdom.name
      $0.founded = kingdom.founded.timeIntervalSinceReferenceDate
      $0.treasury = kingdom.treasury.mapValues { Int64($0) }
      $0.laws = Dictionary(uniqueKeysWithValues: kingdom.laws.map { (Int64($0), $1) })
      $0.banners = kingdom.banners.sorted()
      $0.explored = kingdom.explored.sorted().map { Int64($0) }
      $0.towns = kingdom.towns.map(ProtoTown.init(_:))
      $0.quests = kingdom.quests.map(ProtoQuest.init(_:))
      $0.buildings = zip(kingdom.buildings, kingdom.neighbors).map { ProtoBuilding($0, neighbor: $1) }
    }
  }

  func encode() throws -> Data { try message.serializedBytes() }

  static func decode(_ data: Data) throws -> MessageKingdom {
    MessageKingdom(message: try ProtoKingdom(serializedBytes: data))
  }

  var kingdom: Kingdom {
    let all = message.buildings.map(\.building)
    for (building, mirror) in zip(all, message.buildings) where mirror.hasNeighbor {
      building.neighbor = all[Int(mirror.neighbor)]
    }
    return Kingdom(
      name: message.name, founded: Date(timeIntervalSinceReferenceDate: message.founded),
      treasury: message.treasury.mapValues { Int($0) },
      laws: Dictionary(uniqueKeysWithValues: message.laws.map { (Int($0), $1) }), banners: Set(message.banners),
      explored: Set(message.explored.map { Int($0) }), towns: message.towns.map(\.town),
      quests: message.quests.map(\.quest), buildings: all
    )
  }
}

extension ProtoTown {
  private static let terrains: [(Terrain, ProtoTerrain)] = [
    (.plains, .plains), (.forest, .forest), (.hills, .hills), (.coast, .coast), (.swamp, .swamp),
  ]

  init(_ town: Town) {
    self = .with {
      $0.name = town.name
      if let motto = town.motto { $0.motto = motto }
      $0.x = town.site.x
      $0.y = town.site.y
      $0.terrain = Self.terrains.first { $0.0 == town.site.terrain }?.1 ?? .plains
      $0.population = Int64(town.population)
      $0.prices = town.prices
      $0.guilds = town.guilds.sorted()
      $0.founded = town.founded.timeIntervalSinceReferenceDate
      if let besieged = town.besieged { $0.besieged = besieged.timeIntervalSinceReferenceDate }
      $0.crest = town.crest
    }
  }

  var town: Town {
    let site = Site(x: x, y: y, terrain: Self.terrains.first { $0.1 == terrain }?.0 ?? .plains)
    return Town(
      name: name, motto: hasMotto ? motto : nil, site: site, population: Int(population), prices: prices,
      guilds: Set(guilds),
      founded: Date(timeIntervalSinceReferenceDate: founded),
      besieged: hasBesieged ? Date(timeIntervalSinceReferenceDate: besieged) : nil, crest: crest)
  }
}

extension ProtoQuest {
  init(_ quest: Quest) {
    self = .with {
      $0.title = quest.title
      if let giver = quest.giver { $0.giver = giver }
      if let deadline = quest.deadline { $0.deadline = deadline.timeIntervalSinceReferenceDate }
      switch quest.stage {
      case .open: $0.open = ProtoQuest.Open()
      case .active(let since, let progress):
        $0.active = .with {
          $0.since = since.timeIntervalSinceReferenceDate
          $0.progress = progress
        }
      case .solved(let by, let after):
        $0.solved = .with {
          $0.by = by
          $0.after = Int64(after)
        }
      case .failed(let reason): $0.failed = .with { if let reason { $0.reason = reason } }
      }
      $0.rewards = quest.rewards.map { reward in
        .with {
          switch reward {
          case .gold(let amount): $0.gold = Int64(amount)
          case .item(let name, let count):
            $0.things = .with {
              $0.name = name
              $0.count = Int64(count)
            }
          case .title(let title): $0.title = title
          }
        }
      }
      $0.isHidden = quest.isHidden
    }
  }

  var quest: Quest {
    let stage: Stage =
      switch self.stage {
      case .active(let active):
        .active(since: Date(timeIntervalSinceReferenceDate: active.since), progress: active.progress)
      case .solved(let solved): .solved(by: solved.by, after: Int(solved.after))
      case .failed(let failed): .failed(reason: failed.hasReason ? failed.reason : nil)
      case .open, nil: .open
      }
    let rewards: [Reward] = self.rewards.compactMap { reward in
      switch reward.kind {
      case .gold(let amount): .gold(Int(amount))
      case .things(let things): .item(name: things.name, count: Int(things.count))
      case .title(let title): .title(title)
      case nil: nil
      }
    }
    return Quest(
      title: title, giver: hasGiver ? giver : nil,
      deadline: hasDeadline ? Date(timeIntervalSinceReferenceDate: deadline) : nil,
      stage: stage, rewards: rewards, isHidden: isHidden)
  }
}

extension ProtoBuilding {
  init(_ building: Building, neighbor: Int) {
    self = .with {
      $0.name = building.name
      $0.town = Int64(building.town)
      $0.condition = building.condition
      $0.workers = building.workers
      if neighbor >= 0 { $0.neighbor = Int32(neighbor) }
      if let market = building as? GameWorlds.Market {
        $0.market = .with {
          $0.stock = market.stock.mapValues { Int64($0) }
          if let owner = market.owner { $0.owner = owner }
        }
      } else if let tower = building as? GameWorlds.Tower {
        $0.tower = .with {
          $0.height = tower.height
          if let garrison = tower.garrison { $0.garrison = Int64(garrison) }
        }
      }
    }
  }

  var building: Building {
    switch kind {
    case nil: return Building(name: name, town: Int(town), condition: condition, workers: workers)
    case .market(let mirror):
      let market = GameWorlds.Market(name: name, town: Int(town), condition: condition, workers: workers)
      market.stock = mirror.stock.mapValues { Int($0) }
      market.owner = mirror.hasOwner ? mirror.owner : nil
      return market
    case .tower(let mirror):
      let tower = GameWorlds.Tower(name: name, town: Int(town), condition: condition, workers: workers)
      tower.height = mirror.height
      tower.garrison = mirror.hasGarrison ? Int(mirror.garrison) : nil
      return tower
    }
  }
}
