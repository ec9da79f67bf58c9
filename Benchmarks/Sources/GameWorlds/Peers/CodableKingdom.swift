import Foundation

/// The kingdom for Foundation's encoders. Everything but the buildings is Codable as it is; those are classes with
/// subclasses and references, so they get a mirror, made before the clock starts.
struct CodableKingdom: Codable, Sendable {
  var name: String
  var founded: Date
  var treasury: [String: Int]
  var laws: [Int: String]
  var banners: Set<String>
  var explored: Set<Int>
  var towns: [Town]
  var quests: [Quest]
  var buildings: [CodableBuilding]

  init(_ kingdom: Kingdom) {
    name = kingdom.name
    founded = kingdom.founded
    treasury = kingdom.treasury
    laws = kingdom.laws
    banners = kingdom.banners
    explored = kingdom.explored
    towns = kingdom.towns
    quests = kingdom.quests
    buildings = zip(kingdom.buildings, kingdom.neighbors).map { CodableBuilding($0, neighbor: $1 < 0 ? nil : $1) }
  }

  var kingdom: Kingdom {
    let all = buildings.map(\.building)
    for (building, mirror) in zip(all, buildings) { building.neighbor = mirror.neighbor.map { all[$0] } }
    return Kingdom(
      name: name, founded: founded, treasury: treasury, laws: laws, banners: banners, explored: explored, towns: towns,
      quests: quests, buildings: all)
  }
}

struct CodableBuilding: Codable, Sendable {
  var name: String
  var town: Int
  var condition: Float
  var workers: [String]
  var neighbor: Int?
  var kind: Kind

  enum Kind: Codable, Sendable {
    case plain
    case market(stock: [String: Int], owner: String?)
    case tower(height: Double, garrison: Int?)
  }

  init(_ building: Building, neighbor: Int?) {
    name = building.name
    town = building.town
    condition = building.condition
    workers = building.workers
    self.neighbor = neighbor
    kind =
      if let market = building as? Market {
        .market(stock: market.stock, owner: market.owner)
      } else if let tower = building as? Tower {
        .tower(height: tower.height, garrison: tower.garrison)
      } else {
        .plain
      }
  }

  /// The building without its neighbor.
  var building: Building {
    switch kind {
    case .plain: return Building(name: name, town: town, condition: condition, workers: workers)
    case .market(let stock, let owner):
      let market = Market(name: name, town: town, condition: condition, workers: workers)
      market.stock = stock
      market.owner = owner
      return market
    case .tower(let height, let garrison):
      let tower = Tower(name: name, town: town, condition: condition, workers: workers)
      tower.height = height
      tower.garrison = garrison
      return tower
    }
  }
}
