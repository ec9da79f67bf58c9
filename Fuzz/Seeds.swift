import Foundation
import KeepsakeArchive

/// The first inputs: small archives that between them use all that the types have. The same in every run.
enum Seeds {
  static func all() throws -> [(name: String, bytes: Data)] {
    var seeds: [(String, Data)] = []
    func add<Value: Archivable>(_ name: String, _ root: UInt8, _ value: Value) throws {
      var bytes = [UInt8](try Archive.encode(value, writer: 7))
      bytes[Root.numberOffset] = root
      Seal.close(&bytes)
      seeds.append((name, Data(bytes)))
    }
    try add("world-golden", 0, golden())
    try add("world-empty", 0, Pair<World, Everything>(first: World(creatures: []), second: nil))
    try add(
      "world-plain", 0,
      Pair<World, Everything>(first: World(creatures: [Creature(type: 3, name: "c")]), second: Everything()))
    try add("graph-empty", 1, Graph())
    try add("graph-chain", 1, Graph(chain: chain(5)))
    try add("graph-needs", 1, Graph(need: need()))
    try add("graph-owners", 1, owners())
    try add("graph-badges", 1, badges())
    try add("graph-vehicles", 1, vehicles())
    try add("graph-boxes", 1, boxes())
    try add("values-default", 2, Values())
    try add("values-full", 2, values())
    try add("values-wide", 2, wide())
    try add("kept-small", 3, Kept(scene: Scene(name: "castle")))
    try add("kept-full", 3, kept())
    try add("wide-small", 4, Wides(one: Wide()))
    try add("wide-full", 4, wides())
    try add("extras-small", 5, Extras())
    try add("extras-full", 5, extras())
    Registry.unlinkAll()
    return seeds
  }

  private static func golden() -> Pair<World, Everything> {
    let boss = Boss(type: 5, name: "boss")
    boss.rage = 300
    let hero = Creature(type: -1, name: "Held 🗡️")
    hero.inventory = [Item(kind: 3), Item(kind: 4, count: 900, durability: 0.25)]
    hero.target = boss
    boss.friends = [hero, boss]
    let world = World(
      creatures: [hero, boss, Minion(master: boss)],
      events: [.idle, .moved(to: [1, -2]), .said("x", nil), .both(.idle, .said("y", 7))], name: "golden")
    return Pair(first: world, second: nil)
  }

  private static func chain(_ length: Int) -> Chain {
    let first = Chain(0)
    var last = first
    for value in 1..<length {
      let next = Chain(value * 300)
      last.next = next
      last = next
    }
    last.next = first
    return first
  }

  private static func need() -> Need {
    let a = Need(1, nil)
    let b = Need(2, a, [a, a])
    return Need(3, b, [a, b])
  }

  private static func owners() -> Graph {
    let owner = Owner()
    let (a, b) = (Owned(owner: owner, name: "a"), Owned(owner: owner, name: "b"))
    b.other = owner
    owner.owned = [a, b]
    owner.byName = ["a": a, "b": b]
    return Graph(owner: owner, owned: [b])
  }

  private static func badges() -> Graph {
    let all = (0..<4).map { Badge(Int16($0 * 100)) }
    return Graph(badges: Set(all), byBadge: [all[0]: [nil, chain(2)], all[3]: []])
  }

  private static func vehicles() -> Graph {
    let car = Vehicle(wheels: 4)
    let truck = Truck(load: ["sand", ""])
    truck.badge = Badge(9)
    let fire = FireTruck(load: [])
    fire.crew = [Badge(1), Badge(2)]
    fire.leader = car
    car.leader = fire
    truck.links = [.bonds([Bond(to: chain(2)), Bond(to: nil, weight: -1)], need()), .chain(chain(1)), .none]
    return Graph(vehicles: [car, truck, fire, car], link: .chain(chain(2)))
  }

  private static func boxes() -> Graph {
    let box = Box(7)
    let second = Box(8)
    second.more = []
    box.more = [box, second]
    return Graph(box: box, boxes: [Box("x"), Box("")])
  }

  private static func values() -> Values {
    var values = Values()
    values.tree = .branch(.named("t"), .place(Place(x: 1), at: [Place(x: 2, y: 3)]))
    values.nested = .some(.some(.some(4)))
    values.maybe = ["a", .some(nil), nil]
    values.nothings = [Nothing(), Nothing()]
    values.nothing = Nothing()
    values.places = [Place(x: 1), Place(x: -900, y: 70000)]
    values.trees = [.leaf: .named("l"), .branch(.leaf, .leaf): .leaf]
    values.suits = [.hearts: [.spades, .hearts], .spades: []]
    values.matrix = [[[1, 2], []], []]
    values.optionals = [1, nil, .nan]
    values.counter = Counter(5)
    values.counters = ["k": Counter(-3), "z": Counter()]
    return values
  }

  private static func wide() -> Values {
    var values = Values()
    values.nested = .some(.some(nil))
    values.shorts = [1, -1, 300]
    values.words = [1, 1 << 20]
    values.longs = [0, .max]
    values.numbers = [0, 1.5, .infinity]
    values.flags = [true, false, true]
    values.vectors = [[1, 2, 3], [-1, -2, -3]]
    values.bits = [1, 2, 3, .max]
    values.sizes = [CGSize(width: 1, height: 2)]
    values.dates = [Date(timeIntervalSinceReferenceDate: 0), Date(timeIntervalSinceReferenceDate: 1e9)]
    values.ids = [UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)): Data([9, 8])]
    values.urls = [URL(filePath: "/a b")]
    values.letters = ["x", "é"]
    values.pairs = [Pair(first: 1, second: Pair(first: "p", second: 2.5)), Pair(first: 2, second: nil)]
    return values
  }

  private static func extras() -> Extras {
    var extras = Extras()
    extras.closed = -1.5...2.25
    extras.words = ["a"..., ""...]
    extras.upTo = ..<9
    extras.through = ...(-300)
    extras.prices = [0, 12.34, Decimal(string: "-99999999999999999999999999999999999999") ?? 1]
    extras.big = .max
    extras.bigs = [0, 1 << 100]
    extras.waits = [.milliseconds(1500), .zero]
    extras.foreign = Foreign(
      name: "f", number: 0.5, inner: [Foreign(name: "g"), Foreign(name: "h", inner: [Foreign(name: "")])])
    extras.maybe = Foreign(name: "m")
    extras.byName = ["x": Foreign(name: "y", number: 3.5)]
    extras.boxed = [Coded([Foreign(name: "b")]), Coded([])]
    extras.days = [1, 2, 3, 9]
    extras.row = [1, -1, 70_000]
    extras.vector = SIMD8(0, 1, 2, 3, 4, 5, 6, 255)
    extras.small = 0.5
    return extras
  }

  private static func wides() -> Wides {
    let (a, b) = (Wide(), Wide())
    (a.first, a.near, b.last) = (b, b, [a, b, a])
    (a.f0, a.f65, b.f64) = (1, 255, 7)
    return Wides(one: b, all: [a, b])
  }

  private static func kept() -> Kept {
    let (scene, finale) = (Scene(name: "castle"), Finale(name: "end"))
    var note = Note("n", 4)
    note.inner = [Note("deep", -1), Note("", 0)]
    note.chain = chain(2)
    note.bond = Bond(to: note.chain)
    note.tree = .branch(.leaf, .place(Place(x: 5), at: [Place(x: 4)]))
    note.pair = Pair(first: [Place(x: 1, y: 2)], second: Need(6, nil))
    scene.notes = [note]
    scene.linked = finale
    scene.others = [scene, finale]
    let hero = Boss(type: 1, name: "hero")
    scene.hero = hero
    Registry.note(scene)
    return Kept(scene: scene, notes: [Note("m", 5), note], byName: ["k": Note("o", 6)], heroes: [hero])
  }
}
