import Foundation

extension Kingdom {
  /// A kingdom with 400 towns, 2,000 quests and 3,000 buildings, the same every time.
  static func sample(towns townCount: Int = 400) -> Kingdom {
    var random = SeededRandom(seed: 1_789)
    let towns = (0..<townCount).map { town($0, &random) }
    let quests = (0..<(townCount * 5)).map { quest($0, &random) }
    let buildings = (0..<(townCount * 15 / 2)).map { building($0, towns: townCount, &random) }
    for (index, building) in buildings.enumerated() where random.happens(70) {
      building.neighbor = buildings[(index + 1 + random.below(8)) % buildings.count]
    }
    return Kingdom(
      name: "Königreich Avalon", founded: date(&random),
      treasury: Dictionary(uniqueKeysWithValues: goods.map { ($0, random.below(1_000_000)) }),
      laws: Dictionary(uniqueKeysWithValues: (1...120).map { ($0 * 7, "§\($0) \(random.pick(mottoes))") }),
      banners: Set(words.prefix(12)), explored: Set((0..<2_000).map { _ in random.below(64 * 64) }), towns: towns,
      quests: quests,
      buildings: buildings)
  }

  private static let words = [
    "Raven", "Öxarárfoss", "Łódź", "Ψυχή", "Москва", "Київ", "東京", "서울", "القاهرة", "תל אביב", "दिल्ली", "กรุงเทพ",
    "São Tomé", "Ngọc", "Oak",
    "Ash",
    "Willowmere", "Stonebridge", "Ferry", "🏰 Keep",
  ]
  private static let goods = [
    "grain", "salt", "iron", "wool", "timber", "amber", "wine", "spices", "horses", "stone", "paper", "glass", "honey",
    "fish",
  ]
  private static let mottoes = [
    "Ever onward", "Wer rastet, der rostet", "Без труда не вытащишь и рыбку из пруда", "七転び八起き",
    "No tax on bread, salt or music, in times of war and in times of peace alike", "Liberté", "العلم نور", "Stand fast",
  ]

  private static func date(_ random: inout SeededRandom) -> Date {
    Date(timeIntervalSinceReferenceDate: Double(random.below(800_000_000)) + Double(random.below(1_000)) / 1_000)
  }

  private static func town(_ index: Int, _ random: inout SeededRandom) -> Town {
    Town(
      name: "\(random.pick(words)) \(index)", motto: random.happens(40) ? random.pick(mottoes) : nil,
      site: Site(
        x: Double(random.below(100_000)) / 8, y: Double(random.below(100_000)) / 8,
        terrain: random.pick(Terrain.allCases)),
      population: 50 + random.below(90_000),
      prices: Dictionary(
        uniqueKeysWithValues: goods.filter { _ in random.happens(50) }.map { ($0, Double(random.below(9_999)) / 100) }),
      guilds: Set(goods.filter { _ in random.happens(20) }.map { "\($0) guild" }), founded: date(&random),
      besieged: random.happens(10) ? date(&random) : nil, crest: Data((0..<48).map { _ in UInt8(random.below(256)) }))
  }

  private static func quest(_ index: Int, _ random: inout SeededRandom) -> Quest {
    let stage: Stage =
      switch random.below(4) {
      case 0: .open
      case 1: .active(since: date(&random), progress: Double(random.below(101)) / 100)
      case 2: .solved(by: random.pick(words), after: random.below(400))
      default: .failed(reason: random.happens(50) ? random.pick(mottoes) : nil)
      }
    let rewards: [Reward] = (0..<random.below(4)).map { _ in
      switch random.below(3) {
      case 0: .gold(random.below(5_000))
      case 1: .item(name: random.pick(goods), count: 1 + random.below(20))
      default: .title("Keeper of \(random.pick(words))")
      }
    }
    return Quest(
      title: "\(random.pick(words)): \(random.pick(mottoes))", giver: random.happens(60) ? random.pick(words) : nil,
      deadline: random.happens(30) ? date(&random) : nil, stage: stage, rewards: rewards, isHidden: random.happens(20))
  }

  private static func building(_ index: Int, towns: Int, _ random: inout SeededRandom) -> Building {
    let name = "\(random.pick(words)) \(random.pick(["House", "Hall", "Hütte", "館"]))"
    let condition = Float(random.below(256)) / 256
    let workers = (0..<random.below(4)).map { _ in random.pick(words) }
    switch index % 3 {
    case 0:
      let market = Market(name: name, town: random.below(towns), condition: condition, workers: workers)
      market.stock = Dictionary(
        uniqueKeysWithValues: goods.filter { _ in random.happens(30) }.map { ($0, random.below(500)) })
      market.owner = random.happens(50) ? random.pick(words) : nil
      return market
    case 1:
      let tower = Tower(name: name, town: random.below(towns), condition: condition, workers: workers)
      tower.height = Double(random.below(600)) / 10
      tower.garrison = random.happens(50) ? random.below(80) : nil
      return tower
    default:
      return Building(name: name, town: random.below(towns), condition: condition, workers: workers)
    }
  }

  /// Whether two kingdoms hold the same values, buildings of the same classes, and the same neighbours.
  func equals(_ other: Kingdom) -> Bool {
    guard name == other.name, founded == other.founded, treasury == other.treasury, laws == other.laws,
      banners == other.banners,
      explored == other.explored, towns == other.towns, quests == other.quests,
      buildings.count == other.buildings.count,
      neighbors == other.neighbors
    else { return false }
    return zip(buildings, other.buildings).allSatisfy { Self.same($0, $1) }
  }

  /// For each building, which one is its neighbour, as a place in `buildings`; -1 for none.
  var neighbors: [Int] {
    let places = Dictionary(buildings.enumerated().map { (ObjectIdentifier($1), $0) }) { first, _ in first }
    return buildings.map { building in building.neighbor.map { places[ObjectIdentifier($0)] ?? -2 } ?? -1 }
  }

  private static func same(_ one: Building, _ other: Building) -> Bool {
    guard type(of: one) == type(of: other), one.name == other.name, one.town == other.town,
      one.condition == other.condition,
      one.workers == other.workers
    else { return false }
    if let one = one as? Market, let other = other as? Market {
      return one.stock == other.stock && one.owner == other.owner
    }
    if let one = one as? Tower, let other = other as? Tower {
      return one.height == other.height && one.garrison == other.garrison
    }
    return true
  }
}
