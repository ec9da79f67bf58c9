import Foundation
import KeepsakeArchive
import KeepsakeInspection
import TestSupport
import Testing

@Suite struct CodedTests {
  func again<V: Archivable>(_ value: V) throws -> V { try Archive.decode(V.self, from: Archive.encode(value)) }

  /// Encodes and decodes a value as a root, through `Codable`.
  func through<V: Codable>(_ value: V) throws -> V { try Archive.decode(V.self, from: Archive.encode(value)) }

  static func outside() -> Outside {
    var calm = ThirdParty.Weather()
    (calm.sky, calm.wind, calm.byHour, calm.words) = (.clear, nil, [:], [])
    return Outside(
      weather: ThirdParty.Weather(), days: [calm, ThirdParty.Weather()],
      byPlace: ["b": .init(name: "b", latitude: 1, longitude: 2), "a": .init(name: "a", latitude: 3, longitude: 4)],
      tomorrow: .expected(.storm, celsius: nil), yesterday: .unknown, sky: .cloudy, winds: [Coded(.init(x: 1, y: 2))],
      payload: .forecast(Coded(.either(.unknown, or: .unknown)), at: 6))
  }

  // MARK: As a field

  @Test func typesOfOtherPackagesAreKeptAsFields() throws {
    #expect(try again(Self.outside()) == Self.outside())
    var bare = Self.outside()
    (bare.tomorrow, bare.yesterday, bare.days, bare.payload) = (nil, nil, [], .none)
    let copy = try again([bare, Self.outside()])
    #expect(copy == [bare, Self.outside()] && copy[0].tomorrow == nil && copy[0].yesterday == nil)
  }

  @Test func classesAndTheirSubclassesKeepThem() throws {
    let (creature, boss) = (
      OutsideCreature(home: .init(name: "cave", latitude: 1, longitude: 2)),
      OutsideBoss(home: .init(name: "castle", latitude: 3, longitude: 4))
    )
    creature.friend = boss
    boss.friend = creature
    boss.weather = ThirdParty.Weather()
    boss.path = [.init(x: 1, y: 2, gusts: [3])]
    boss.mood = .clear
    let copy = try again([creature, boss])
    let castle = try #require(copy[1] as? OutsideBoss)
    #expect(
      copy[0].friend === castle && castle.friend === copy[0] && copy[0].home.name == "cave" && copy[0].weather == nil)
    #expect(
      castle.weather == ThirdParty.Weather() && castle.path == boss.path && castle.mood == .clear
        && castle.home.name == "castle")
    for object in [creature, boss] + copy { object.friend = nil }
  }

  @Test func genericTypesKeepThem() throws {
    let value = Holding(inner: ThirdParty.Sky.clear, list: [.storm], other: 3)
    #expect(try again(value) == value)
  }

  @Test func mergingKeepsWhatTheOtherSideChanged() throws {
    let ancestor = Joined()
    var (mine, theirs) = (ancestor, ancestor)
    mine.seen = [.clear]
    (theirs.level, theirs.sky, theirs.seen, theirs.silent.x) = (5, .storm, [.storm], 9)
    mine.mergeFields(from: theirs, ancestor: ancestor)
    #expect(mine.level == 5 && mine.sky == .storm && mine.seen == [.clear, .storm] && mine.silent.x == 9)
    // Both sides changed it.
    (mine.silent.x, theirs.silent.x) = (2, 3)
    mine.mergeFields(from: theirs, ancestor: ancestor)
    #expect(mine.silent.x == 2)
  }

  // MARK: As a root, and compared with JSON

  @Test func whatJSONKeepsIsKept() throws {
    func check<V: Codable & Equatable>(_ value: V, _ location: SourceLocation = #_sourceLocation) throws {
      let json = try JSONDecoder().decode(V.self, from: JSONEncoder().encode(value))
      #expect(json == value, "JSON itself doesn't preserve this sample", sourceLocation: location)
      #expect(try again(Coded(value)).value == value, sourceLocation: location)
      #expect(try through(value) == value, sourceLocation: location)
      #expect(try again([Coded([value]), Coded([])]).map(\.value) == [[value], []], sourceLocation: location)
      #expect(
        try again(Coded(["key": Optional(value), "none": nil])).value == ["key": value, "none": nil],
        sourceLocation: location)
    }
    try check(ThirdParty.Weather())
    try check(ThirdParty.Sky.cloudy)
    try check(ThirdParty.Celsius(3))
    try check(ThirdParty.Wind(x: 1, y: 2))
    try check(ThirdParty.Sparse([nil, 1, nil, nil, 2]))
    try check(ThirdParty.Forecast.either(.expected(.clear, celsius: Celsius(1)), or: .unknown))
    try check([ThirdParty.Sky.storm: [ThirdParty.Wind(x: 1, y: 2)]])
    try check(["a": ["b": ThirdParty.Silent()]])
    try check(Range(uncheckedBounds: (1, 5)))
    try check(CGRect(x: 1, y: 2, width: 3, height: 4))
    try check(DateComponents(year: 2026, month: 11, day: 21))
    try check(SIMD3<Float>(1, 2, 3))
    try check(IndexSet(integersIn: 4..<9))
    try check([Int8.min, 0, .max])
    try check([UInt64.max, 0])
    try check([Int128.max, .min, 5])
    try check(UInt128.max)
    try check([1.5, -0.0, 1e300])
    try check([Float.leastNonzeroMagnitude, 0.1])
    try check(["", "é", "e\u{301}", "\0", "👾"])
    try check([Decimal.pi, -1])
    try check(PublicSave(id: 3, b: "b"))
  }

  private typealias Celsius = ThirdParty.Celsius

  @Test func numbersMayChangeTheirTypeIfTheyFit() throws {
    func read<A: Codable, B: Codable>(_ value: A, as type: B.Type) throws -> B {
      try Archive.decode(Coded<B>.self, from: Archive.encode(Coded(value))).value
    }
    #expect(try read(Int8(-3), as: Int64.self) == -3)
    #expect(try read(3.0, as: UInt8.self) == 3)
    #expect(try read(300, as: Double.self) == 300)
    #expect(try read(0.1, as: Float.self) == 0.1)
    #expect(try read(0.1, as: Decimal.self) == Decimal(string: "0.1"))
    #expect(try read(Decimal(string: "2.5"), as: Double?.self) == 2.5)
    #expect(try read(Decimal(12), as: Int.self) == 12)
    #expect(try read(5, as: Date.self) == Date(timeIntervalSinceReferenceDate: 5))
    #expect(try read(ThirdParty.Weather().id, as: String.self) == ThirdParty.Weather().id.uuidString)
    #expect(try read("https://example.com", as: URL.self) == URL(string: "https://example.com"))
    #expect(try read(Int?.some(3), as: Int.self) == 3)
    #expect(try read(3, as: Int?.self) == 3)
    for attempt in [
      { _ = try read(300, as: UInt8.self) }, { _ = try read(-1, as: UInt.self) }, { _ = try read(1.5, as: Int.self) },
      { _ = try read(Int.max, as: Double.self) }, { _ = try read(1e300, as: Float.self) },
      { _ = try read("1", as: Int.self) },
      { _ = try read(1, as: Bool.self) }, { _ = try read(1, as: String.self) }, { _ = try read([1], as: Int.self) },
      { _ = try read(Double.nan, as: Int.self) }, { _ = try read("no UUID", as: UUID.self) },
      { _ = try read(1, as: [Int].self) }, { _ = try read([1], as: [String: Int].self) },
      { _ = try read(["a": 1], as: [Int].self) },
    ] as [() throws -> Void] {
      #expect(throws: ArchiveError.self) { try attempt() }
      do { try attempt() } catch { #expect((error as? ArchiveError)?.code == .mismatch, "\(error)") }
    }
  }

  @Test func numbersThatJSONLacksAreKept() throws {
    #expect(try through([Celsius(.infinity), Celsius(-.infinity)]) == [Celsius(.infinity), Celsius(-.infinity)])
    #expect(try through(Celsius(.nan)).degrees.isNaN)
  }

  @Test func subclassesComeBackWithWhatTheirSuperclassKept() throws {
    let bird = ThirdParty.Bird(song: "tweet")
    bird.legs = 1
    let copy = try through(bird)
    #expect(copy.song == "tweet" && copy.legs == 1)
    let fish = ThirdParty.Fish(fins: 3)
    fish.legs = 5
    #expect(try through(fish).fins == 3)
    #expect(try through(fish).legs == 5)
  }

  @Test func anArchivableTypeGoesItsOwnWayInGenericCode() throws {
    func generic<V: Codable>(_ value: V) throws -> Data { try Archive.encode(value) }
    func read<V: Codable>(_ type: V.Type, _ data: Data) throws -> V { try Archive.decode(type, from: data) }
    let save = PublicSave(id: 7, b: "x")
    #expect(try generic(save) == Archive.encode(save))
    #expect(try generic([1, 2]) == Archive.encode([1, 2]))
    #expect(try generic(Int?.some(3)) == Archive.encode(Int?.some(3)))
    #expect(try read(PublicSave.self, Archive.encode(save)) == save)
    #expect(try read(Int?.self, Archive.encode(Int?.none)) == nil)
    #expect(Archive.canEncode(ThirdParty.Weather()) && !Archive.canEncode(ThirdParty.Silent()))
    // An older archive, from before the type was archivable.
    #expect(try Archive.decode(Coded<PublicSave>.self, from: Archive.encode(Coded(save))).value == save)
  }

  // MARK: Bytes

  static let fixture = Repository.root.appending(path: "Tests/KeepsakeArchiveTests/Fixtures/coded-v1.keepsake")

  @Test func equalValuesGiveTheGoldenBytesInEveryProcess() throws {
    let bytes = try Archive.encode(Self.outside())
    if ProcessInfo.processInfo.environment["KEEPSAKE_WRITE_FIXTURES"] == "1",
      !FileManager.default.fileExists(atPath: Self.fixture.path)
    {
      try bytes.write(to: Self.fixture)
    }
    let golden = try Data(contentsOf: Self.fixture)
    #expect(bytes == golden)
    #expect(try Archive.decode(Outside.self, from: golden) == Self.outside())
  }

  @Test func theOrderInWhichASetWasFilledDoesNotShow() throws {
    let numbers = Array(0..<100)
    func words(_ numbers: [Int], capacity: Int) -> Set<ThirdParty.Forecast> {
      var set = Set<ThirdParty.Forecast>(minimumCapacity: capacity)
      for number in numbers { set.insert(.expected(.clear, celsius: Celsius(Double(number)))) }
      set.insert(.unknown)
      return set
    }
    func table(_ numbers: [Int], capacity: Int) -> [ThirdParty.Wind: Set<ThirdParty.Forecast>] {
      var table = [ThirdParty.Wind: Set<ThirdParty.Forecast>](minimumCapacity: capacity)
      for number in numbers { table[.init(x: Float(number), y: 0)] = words([number, 1, 2], capacity: capacity) }
      return table
    }
    #expect(
      try Archive.encode(words(numbers, capacity: 1)) == Archive.encode(words(numbers.reversed(), capacity: 4000)))
    #expect(
      try Archive.encode(table(numbers, capacity: 1)) == Archive.encode(table(numbers.reversed(), capacity: 4000)))
    #expect(try through(table(numbers, capacity: 1)) == table(numbers, capacity: 9))
  }

  @Test func aKeyIsWrittenOnce() throws {
    let stations = (0..<1000).map { ThirdParty.Station(name: "\($0)", latitude: 0, longitude: 0) }
    let bytes = try Archive.encode(stations)
    #expect(bytes.count < 32 * stations.count)
    #expect(try Archive.decode([ThirdParty.Station].self, from: bytes) == stations)
  }

  @Test func inspectionShowsTheTree() throws {
    let inspection = try ArchiveInspection(of: Archive.encode(Self.outside()))
    let weather = try #require(inspection.root["weather"])
    #expect(weather["sky"] == .string("storm") && weather["temperature"] == .number(-3.5))
    #expect(
      weather["wind"] == .array([.number(Double(Float(0.1))), .number(-2), .array([.integer(4), .integer(500)])]))
    #expect(weather["words"] == .array([.string("wet"), .string("cold"), .string("dark"), .string("loud")]))
    #expect(
      weather["price"] == .decimal("19.99") && weather["most"] == .unsigned(.max)
        && weather["nothing"] == .dictionary([]))
    #expect(weather["byHour"]?["-1"] == .string("before"))
    #expect(inspection.types[0].fields[0].type == "coded")
    #expect(inspection.text().contains("price") && inspection.text().contains("19.99"))
    let json = try JSONSerialization.jsonObject(with: inspection.json()) as? [String: Any]
    #expect(((json?["root"] as? [String: Any])?["weather"] as? [String: Any])?["sky"] as? String == "storm")
  }
}
