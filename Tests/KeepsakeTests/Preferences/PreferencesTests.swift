import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeStore
import Observation
import TestSupport
import Testing

@testable import Keepsake

enum Difficulty: String { case easy, normal, hard }
/// As a newer game declares it.
enum LaterDifficulty: String { case easy, normal, hard, nightmare }
enum Hand: Int, Codable { case left, right }

@Archivable struct Bindings: Equatable {
  var jump = "space"
  var fire: [String] = ["x", "ctrl"]
}

struct Window: Codable, Equatable {
  var size = [800, 600]
  var title: String? = "Space"
}

extension PreferenceKey<Double> { static let volume = PreferenceKey("volume", default: 0.8) }
extension PreferenceKey<Bool> { static let isMuted = PreferenceKey("muted", default: false) }
extension PreferenceKey<Int> { static let lives = PreferenceKey("lives", default: 3) }
extension PreferenceKey<UInt8> { static let gamma = PreferenceKey("gamma", default: 128) }
extension PreferenceKey<Float> { static let zoom = PreferenceKey("zoom", default: 1) }
extension PreferenceKey<String> {
  static let nick = PreferenceKey("nick", default: "player")
  static let hat = PreferenceKey("hat", default: "none", synced: true)
}
extension PreferenceKey<Data> { static let token = PreferenceKey("token", default: Data()) }
extension PreferenceKey<Date> { static let seen = PreferenceKey("seen", default: .distantPast) }
extension PreferenceKey<URL?> { static let page = PreferenceKey("page", default: nil) }
extension PreferenceKey<Difficulty> { static let difficulty = PreferenceKey("difficulty", default: .normal) }
extension PreferenceKey<Hand> { static let hand = PreferenceKey("hand", default: .right) }
extension PreferenceKey<Difficulty?> {
  static let lastDifficulty = PreferenceKey("last difficulty", default: nil)
}
extension PreferenceKey<[Difficulty]> { static let cleared = PreferenceKey("cleared", default: []) }
extension PreferenceKey<[Hand]> { static let hands = PreferenceKey("hands", default: []) }
extension PreferenceKey<Hand?> { static let otherHand = PreferenceKey("other hand", default: nil) }
extension PreferenceKey<[Int]> { static let order = PreferenceKey("order", default: [1, 2]) }
extension PreferenceKey<Bindings> { static let bindings = PreferenceKey("bindings", default: Bindings()) }
extension PreferenceKey<Window> { static let window = PreferenceKey("window", default: Window()) }

/// The bytes of a preference in a game's store; nil if there are none.
func storedPreference(_ name: String, of game: GameData) throws -> Data? {
  try game.core.store.read { try $0.preferences().kept.first { $0.name == name }?.bytes() }
}

@Suite struct PreferencesTests {
  let device: Device

  init() throws { device = try Device() }

  // MARK: Values

  @Test("a value of each kind is the same at once and after a restart")
  func kinds() throws {
    var game = try device.open()
    let date = Date(timeIntervalSince1970: 1_234.5)
    func setAll() {
      let preferences = game.preferences
      preferences[.volume] = 0.1
      preferences[.isMuted] = true
      preferences[.lives] = -7
      preferences[.gamma] = 255
      preferences[.zoom] = 0.1
      preferences[.nick] = "Zoë 花"
      preferences[.token] = Data([0, 255, 7])
      preferences[.seen] = date
      preferences[.page] = URL(string: "https://example.com/a?b")
      preferences[.difficulty] = .hard
      preferences[.hand] = .left
      preferences[.lastDifficulty] = .easy
      preferences[.cleared] = [.easy, .hard]
      preferences[.hands] = [.right, .left]
      preferences[.otherHand] = .left
      preferences[.order] = [3, 1]
      preferences[.bindings] = Bindings(jump: "w", fire: [])
      preferences[.window] = Window(size: [1, 2], title: nil)
      preferences[.hat] = "crown"
    }
    func check(_ when: Comment) {
      let preferences = game.preferences
      #expect(preferences[.volume] == 0.1, when)
      #expect(preferences[.isMuted], when)
      #expect(preferences[.lives] == -7, when)
      #expect(preferences[.gamma] == 255, when)
      #expect(preferences[.zoom] == 0.1, when)
      #expect(preferences[.nick] == "Zoë 花", when)
      #expect(preferences[.token] == Data([0, 255, 7]), when)
      #expect(preferences[.seen] == date, when)
      #expect(preferences[.page]?.absoluteString == "https://example.com/a?b", when)
      #expect(preferences[.difficulty] == .hard, when)
      #expect(preferences[.hand] == .left, when)
      #expect(preferences[.lastDifficulty] == .easy, when)
      #expect(preferences[.cleared] == [.easy, .hard], when)
      #expect(preferences[.order] == [3, 1], when)
      #expect(preferences[.hands] == [.right, .left], when)
      #expect(preferences[.otherHand] == .left, when)
      #expect(preferences[.bindings] == Bindings(jump: "w", fire: []), when)
      #expect(preferences[.window] == Window(size: [1, 2], title: nil), when)
      #expect(preferences[.hat] == "crown", when)
    }
    setAll()
    check("seen at once")
    try game.close()
    game = try device.open()
    defer { end(game) }
    check("after a restart")
    check("asked for a second time")
    #expect(game.preferences.names.count == 19)
    #expect(game.incidents.isEmpty)
  }

  @Test("a default isn't stored, so that a later release may change it; a value that was set is kept")
  func defaults() throws {
    var game = try device.open()
    #expect(game.preferences[.volume] == 0.8 && !game.preferences.contains(.volume))
    try game.preferences.flush()
    #expect(try storedPreference("volume", of: game) == nil)
    game.preferences[.lives] = 3
    try game.preferences.set(nil, for: .page)
    #expect(game.preferences.contains(.lives) && game.preferences.contains(.page))
    #expect(game.preferences[PreferenceKey("page", default: URL(string: "about:blank"))] == nil)
    try game.close()
    game = try device.open()
    defer { end(game) }
    let volume: Double = game.preferences[PreferenceKey("volume", default: 0.5)]
    #expect(volume == 0.5)
    #expect(game.preferences[PreferenceKey("lives", default: 5)] == 3)
    #expect(game.preferences[PreferenceKey("page", default: URL(string: "about:blank"))] == nil)
    #expect(game.preferences.names == ["lives", "page"])
  }

  @Test("a removed preference has its default again, at once and after a restart")
  func removes() throws {
    var game = try device.open()
    game.preferences[.volume] = 0.1
    game.preferences[.bindings] = Bindings(jump: "w")
    try game.preferences.flush()
    try game.preferences.remove(.volume)
    try game.preferences.remove(.bindings)
    try game.preferences.remove(.nick)
    #expect(game.preferences[.volume] == 0.8 && game.preferences.names.isEmpty)
    try game.preferences.flush()
    #expect(try storedPreference("volume", of: game) == nil)
    // Set and removed before anything was committed.
    game.preferences[.lives] = 1
    try game.preferences.remove(.lives)
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(
      game.preferences[.bindings] == Bindings() && game.preferences[.lives] == 3 && game.preferences.names.isEmpty)
  }

  // MARK: Commits

  @Test("a preference that was set is committed automatically, without a flush")
  func commitsItself() async throws {
    let game = try device.open()
    defer { end(game) }
    game.preferences[.volume] = 0.1
    game.preferences[.volume] = 0.2
    try await until { try storedPreference("volume", of: game) == Archive.encode(0.2) }
    game.preferences[.volume] = 0.3
    try await until { try storedPreference("volume", of: game) == Archive.encode(0.3) }
  }

  @Test(
    "flushing, a checkpoint and closing make the preferences that were set before durable",
    arguments: ["flush", "flush in a task", "checkpoint", "close"])
  func durable(way: String) async throws {
    let game = try device.open()
    game.preferences[.volume] = 0.1
    game.preferences[.hat] = "crown"
    switch way {
    case "flush": try flush(game)
    case "flush in a task": try await game.preferences.flush()
    case "checkpoint": try game.checkpoint { try $0.record(2, for: .level) }.wait()
    default: break
    }
    if way != "close" {
      #expect(try storedPreference("volume", of: game) == Archive.encode(0.1))
      #expect(try game.core.store.read { try $0.cells(in: "preferences").count } == 1)
    }
    try game.close()
    let again = try device.open()
    defer { end(again) }
    #expect(again.preferences[.volume] == 0.1 && again.preferences[.hat] == "crown")
  }

  /// In a task, the compiler would choose the asynchronous one.
  private func flush(_ game: GameData) throws { try game.preferences.flush() }

  @Test("of two values in commits that share a transaction, the last one is stored, even if it is the old one")
  func backInOneTransaction() throws {
    let game = try device.open()
    defer { end(game) }
    game.preferences[.volume] = 0.1
    try game.preferences.flush()
    let gate = Gate()
    let first = try game.core.store.submit { _, _ in gate.pass() }
    gate.waitForArrival()
    // The three waiting commits share a transaction: the first has 0.2, and the last 0.1, which the store had before.
    game.preferences[.volume] = 0.2
    game.preferences.commitSoon()
    let second = try game.core.store.submit { [preferences = game.preferences] _, _ in preferences[.volume] = 0.1 }
    let third = try #require(try game.preferences.commit())
    gate.open()
    try first.wait()
    try second.wait()
    try third.wait()
    #expect(try storedPreference("volume", of: game) == Archive.encode(0.1))
    #expect(game.preferences[.volume] == 0.1)
  }

  @Test("a failed commit is reported and keeps its values in memory, and the next commit stores all of them")
  func failedCommit() throws {
    let game = try device.open()
    defer { end(game) }
    try game.preferences.set(0.1, for: .volume)
    try game.preferences.flush()
    // Another connection begins a write transaction, and doesn't end it.
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(
      path: device.url.appendingPathComponent(Store.databaseName).path, configuration: configuration)
    try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }
    game.preferences[.volume] = 0.2
    game.preferences[.hat] = "crown"
    #expect(throws: StoreError.self) { try game.preferences.flush() }
    #expect(game.incidents.map(\.kind) == [.failedCommit])
    #expect(game.preferences[.volume] == 0.2 && game.preferences[.hat] == "crown")
    #expect(try storedPreference("volume", of: game) == Archive.encode(0.1))
    game.preferences[.lives] = 9
    try other.inDatabase { try $0.execute(sql: "ROLLBACK") }
    try other.close()
    try game.preferences.flush()
    #expect(try storedPreference("volume", of: game) == Archive.encode(0.2))
    #expect(try storedPreference("lives", of: game) == Archive.encode(9))
    #expect(try game.core.store.read { try $0.cells(in: "preferences").map(\.key.key) } == ["hat"])
  }

  // MARK: Unreadable values

  @Test("reading as another type gives the default and an incident with the name; the value is kept until it is set")
  func wrongType() throws {
    var game = try device.open()
    game.preferences[.nick] = "Ada"
    game.preferences[.lives] = 7
    game.preferences[.difficulty] = .hard
    game.preferences[PreferenceKey("later", default: LaterDifficulty.easy)] = .nightmare
    try game.preferences.set([LaterDifficulty.easy, .nightmare], for: PreferenceKey("several", default: []))
    func check(_ when: Comment) {
      #expect(game.preferences[PreferenceKey("nick", default: 5)] == 5, when)
      #expect(game.preferences[PreferenceKey("nick", default: 5)] == 5, when)
      #expect(game.preferences[PreferenceKey("nick", default: Bindings())] == Bindings(), when)
      let later: Difficulty = game.preferences[PreferenceKey("later", default: .easy)]
      #expect(later == .easy, when)
      let several = PreferenceKey<[Difficulty]>("several", default: [.hard])
      #expect(game.preferences[several] == [.hard], when)
      #expect(game.incidents.map(\.kind) == Array(repeating: .unreadable, count: 4), when)
      #expect(game.incidents.filter { $0.message.contains("\"nick\"") }.count == 2, when)
      // A whole number can be read as any type of number.
      let lives: Double = game.preferences[PreferenceKey("lives", default: 0.5)]
      #expect(lives == 7, when)
      #expect(game.preferences[PreferenceKey("lives", default: UInt8(0))] == 7, when)
      #expect(game.preferences[PreferenceKey("difficulty", default: "")] == "hard", when)
      #expect(game.preferences[.nick] == "Ada" && game.preferences[.lives] == 7, when)
    }
    check("in memory")
    try game.close()
    game = try device.open()
    defer { end(game) }
    check("from the store")
    try game.preferences.flush()
    #expect(try storedPreference("nick", of: game) == Archive.encode("Ada"))
    try game.preferences.set(6, for: PreferenceKey("nick", default: 5))
    #expect(game.preferences[PreferenceKey("nick", default: 5)] == 6)
    try game.preferences.flush()
    #expect(try storedPreference("nick", of: game) == Archive.encode(6))
  }

  @Test("reading a preference as a less precise type doesn't change its stored value")
  func narrowReader() throws {
    var game = try device.open()
    game.preferences[.volume] = 0.1
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.preferences[PreferenceKey("volume", default: Float(0))] == 0.1)
    #expect(game.preferences[.volume] == 0.1)
  }

  @Test("a damaged preference has its default, with an incident; other preferences, saves and money are unchanged")
  func damaged() throws {
    var game = try device.open()
    game.preferences[.volume] = 0.1
    game.preferences[.nick] = "Ada"
    try game.saves.capture(World(level: 5), to: .main).wait()
    try game.wallet.earn(7, .gems, for: "a quest")
    try game.close()
    let queue = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    try queue.write {
      try $0.execute(sql: "UPDATE preference SET body = x'0102030405060708090a' WHERE name = 'volume'")
    }
    try queue.close()
    for url in try FileManager.default.contentsOfDirectory(at: device.url, includingPropertiesForKeys: nil)
    where url.lastPathComponent.hasPrefix("backup") { try FileManager.default.removeItem(at: url) }
    game = try device.open()
    #expect(game.incidents.map(\.kind) == [.recovered])
    #expect(game.preferences[.nick] == "Ada" && game.preferences[.volume] == 0.8)
    #expect(try game.saves.load(.main)?.level == 5)
    #expect(game.wallet[.gems].total == 7)
    game.preferences[.volume] = 0.3
    try game.close()
    game = try device.open()
    #expect(game.preferences[.volume] == 0.3 && game.incidents.isEmpty)
    try game.close()
  }

  @Test("a preference damaged after the store was checked has its default, with an incident, until it is set")
  func damagedLater() throws {
    let game = try device.open()
    defer { end(game) }
    game.preferences[.volume] = 0.1
    game.preferences[.nick] = "Ada"
    game.preferences[.lives] = 7
    try game.preferences.flush()
    let queue = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    try queue.write { database in
      try database.execute(sql: "UPDATE preference SET body = x'0102030405060708090a' WHERE name = 'volume'")
      try database.execute(sql: "UPDATE preference SET body = 5 WHERE name = 'lives'")
    }
    try queue.close()
    let preferences = try Preferences(core: game.core)
    #expect(preferences[.volume] == 0.8)
    #expect(preferences[.nick] == "Ada")
    #expect(preferences[.lives] == 3)
    #expect(game.incidents.map(\.kind) == [.unreadable, .unreadable])
    try preferences.set(0.2, for: .volume)
    try preferences.flush()
    #expect(try storedPreference("volume", of: game) == Archive.encode(0.2))
  }

  @Test("a preference that was edited in a sealed store has its default, and an incident reports it")
  func forged() throws {
    let secret = Data((0..<32).map { UInt8(90 - $0) })
    func open() throws -> GameData {
      try GameData.open(
        "com.example.space", at: device.url, seal: .signed(secret), environment: device.clock.environment)
    }
    var game = try open()
    game.preferences[.lives] = 7
    game.preferences[.volume] = 0.1
    try game.close()
    let queue = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    try queue.write { database in
      // The value of another name, with a checksum that is right.
      let body = try #require(try Data.fetchOne(database, sql: "SELECT body FROM preference WHERE name = 'volume'"))
        .dropFirst(8)
      try database.execute(
        sql: "UPDATE preference SET body = ? WHERE name = 'lives'",
        arguments: [PreferencesForgery.checksum(of: body, name: "lives") + body])
    }
    try queue.close()
    game = try open()
    defer { end(game) }
    #expect(game.preferences[.lives] == 3 && game.preferences[.volume] == 0.1)
    #expect(game.incidents.map(\.kind) == [.tampered] && game.incidents.first?.message.contains("lives") == true)
  }

  // MARK: Mistakes

  @Test("invalid names, values that are too large, and a closed game throw at the call, and nothing changes")
  func mistakes() throws {
    let game = try device.open()
    let preferences = game.preferences
    for name in ["", "a\nb", "\u{7F}", String(repeating: "k", count: 257), String(repeating: "é", count: 129)] {
      #expect(
        gameErrorCode { try preferences.set(1, for: PreferenceKey(name, default: 0)) } == .misuse, "\(name.prefix(20))")
      #expect(preferences[PreferenceKey(name, default: 0)] == 0)
    }
    try preferences.set(1, for: PreferenceKey(String(repeating: "k", count: 256), default: 0))
    let large = Data(count: Preferences.maximumValueBytes)
    #expect(gameErrorCode { try preferences.set(large, for: .token) } == .tooLarge)
    let list = PreferenceKey<[Double]>("list", default: [])
    let numbers = [Double](repeating: 1.5, count: 200_000)
    #expect(gameErrorCode { try preferences.set(numbers, for: list) } == .tooLarge)
    try preferences.set(large.dropLast(1_000), for: .token)
    let text = String(repeating: "x", count: Preferences.maximumSyncedBytes)
    #expect(gameErrorCode { try preferences.set(text, for: .hat) } == .tooLarge)
    try preferences.set(String(text.dropLast(100)), for: .hat)
    #expect(preferences[.hat].count == text.count - 100)
    try preferences.set("crown", for: .hat)
    preferences[.hat] = text
    #expect(preferences[.hat] == "crown")
    #expect(game.incidents.map(\.kind) == [.failedCommit])
    try game.close()
    #expect(gameErrorCode { try preferences.set(0.1, for: .volume) } == .closed)
    #expect(gameErrorCode { try preferences.remove(.hat) } == .closed)
    preferences[.lives] = 1
    #expect(preferences[.lives] == 3 && preferences[.hat] == "crown" && game.incidents.count == 2)
    try preferences.flush()
  }

  @Test(
    "an invalid name is refused even after it was read, and other preferences are still stored",
    arguments: [false, true])
  func mistakesAfterLooking(isSynced: Bool) throws {
    var game = try device.open()
    for name in ["", "a\nb", String(repeating: "k", count: 257)] {
      let key = PreferenceKey(name, default: 0, synced: isSynced)
      #expect(game.preferences[key] == 0 && !game.preferences.contains(key))
      #expect(gameErrorCode { try game.preferences.set(1, for: key) } == .misuse, "\(name.prefix(20))")
      game.preferences[key] = 2
      #expect(game.preferences[key] == 0 && !game.preferences.contains(key))
    }
    game.preferences[.volume] = 0.5
    try flush(game)
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.preferences[.volume] == 0.5 && game.preferences.names == ["volume"])
  }

  @Test("a synced value that no cloud would accept fails alone, and what was set with it is kept")
  func refusedAlone() throws {
    var game = try device.open()
    // Written to the store directly: no game and no cloud could do that.
    let stamp = Stamp(caughtUp: false, milliseconds: 1, writer: WriterID(9))
    try game.core.store.write {
      try $0.setCell(
        CellUpdate(
          key: CellKey(collection: "preferences", key: "a\nb"),
          state: CellState(value: .latest(stamp, .data(Archive.encode(7))))))
    }
    try game.close()
    game = try device.open()
    let strange = PreferenceKey("a\nb", default: 0, synced: true)
    #expect(game.preferences[strange] == 7)
    game.preferences[strange] = 8
    game.preferences[.volume] = 0.5
    game.preferences[.hat] = "crown"
    try flush(game)
    #expect(game.incidents.map(\.kind) == [.failedCommit])
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.preferences[.volume] == 0.5 && game.preferences[.hat] == "crown" && game.preferences[strange] == 7)
  }

  @Test("a value that can't be encoded throws, and numbers that aren't finite are kept as they are")
  func odd() throws {
    struct Refuses: Codable, Sendable {
      func encode(to encoder: any Encoder) throws { throw CocoaError(.coderInvalidValue) }
    }
    let game = try device.open()
    defer { end(game) }
    #expect(throws: CocoaError.self) {
      try game.preferences.set(Refuses(), for: PreferenceKey("refuses", default: Refuses()))
    }
    game.preferences[.volume] = .nan
    game.preferences[.zoom] = -.infinity
    try game.preferences.flush()
    #expect(game.preferences[.volume].isNaN && game.preferences[.zoom] == -.infinity)
    #expect(game.preferences.names == ["volume", "zoom"])
  }

  @Test("preferences have a largest count and total size; at these limits, existing ones can still be changed")
  func limits() throws {
    var game = try device.open()
    for number in 0..<Preferences.maximumKeys { game.preferences[PreferenceKey("key \(number)", default: 0)] = number }
    #expect(gameErrorCode { try game.preferences.set(0.1, for: .volume) } == .tooLarge)
    #expect(gameErrorCode { try game.preferences.set("crown", for: .hat) } == .tooLarge)
    game.preferences[PreferenceKey("key 7", default: 0)] = -7
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.preferences.names.count == Preferences.maximumKeys)
    #expect(
      (0..<Preferences.maximumKeys).allSatisfy { (number: Int) -> Bool in
        let value: Int = game.preferences[PreferenceKey("key \(number)", default: 0)]
        return value == (number == 7 ? -7 : number)
      })
    #expect(gameErrorCode { try game.preferences.set(0.1, for: .volume) } == .tooLarge)
    try game.preferences.remove(PreferenceKey("key 9", default: 0))
    try game.preferences.set(0.1, for: .volume)

    let other = try Device()
    let second = try other.open()
    defer { end(second) }
    let million = Data(count: 1_000_000)
    var count = 0
    while gameErrorCode({ try second.preferences.set(million, for: PreferenceKey("blob \(count)", default: Data())) })
      == nil, count < 100
    {
      count += 1
    }
    #expect(count == Preferences.maximumBytes / (1_000_000 + 64))
    for number in 0..<count { try second.preferences.remove(PreferenceKey("blob \(number)", default: Data())) }
    try second.preferences.set(million, for: .token)
  }

  @Test("reading very many names without values returns their defaults, and changes of them are still observed")
  func manyAbsent() throws {
    let game = try device.open()
    defer { end(game) }
    for number in 0..<25_000 { #expect(game.preferences[PreferenceKey("asked \(number)", default: 4)] == 4) }
    let told = Shared(0)
    withObservationTracking {
      _ = game.preferences[PreferenceKey("asked 24999", default: 4)]
    } onChange: {
      told.value += 1
    }
    game.preferences[PreferenceKey("asked 24999", default: 4)] = 5
    #expect(told.value == 1 && game.preferences[PreferenceKey("asked 24999", default: 4)] == 5)
  }

  @Test("each of very many names keeps its own value, local or synced, in any Unicode normalization")
  func names() async throws {
    // More names than the fast lookup finds, of zero to three words of eight bytes, alike at both ends, and not all
    // ASCII.
    let stems = (0..<1_100).map {
      ["\($0)", "key \($0)!", "the setting \($0) of the game", "größe \($0)"][$0 % 4] + "\($0 / 4)"
    }
    @Sendable func key(_ number: Int, decomposed: Bool = false) -> PreferenceKey<Int> {
      let name = decomposed ? stems[number].decomposedStringWithCanonicalMapping : stems[number]
      return PreferenceKey(name, default: -1, synced: number % 3 == 0)
    }
    #expect(Set(stems).count == stems.count && key(3, decomposed: true).name.utf8.elementsEqual(stems[3].utf8))
    let wrong = try await onThread { [device] in
      var wrong: [String] = []
      let game = try device.open()
      for round in 1...3 {
        for number in stems.indices { game.preferences[key(number, decomposed: round == 2)] = round * 10_000 + number }
        for number in stems.indices
        where game.preferences[key(number, decomposed: round == 3)] != round * 10_000 + number {
          wrong.append("\(stems[number]) in round \(round)")
        }
      }
      if game.preferences.names != stems.sorted() { wrong.append("the names") }
      try game.close()
      let again = try device.open()
      for number in stems.indices where again.preferences[key(number)] != 30_000 + number {
        wrong.append("\(stems[number]) after a restart")
      }
      wrong += again.incidents.map(\.message)
      try again.close()
      return wrong
    }
    #expect(wrong.isEmpty)
  }

  // MARK: Threads

  @Test("with many writers of one key, the last value is kept, and the store contains what memory contains")
  func threads() async throws {
    let game = try device.open()
    try await onThread {
      DispatchQueue.concurrentPerform(iterations: 6) { thread in
        for step in 0..<400 {
          game.preferences[.lives] = thread * 1_000 + step
          game.preferences[PreferenceKey("own \(thread)", default: 0)] = step
          game.preferences[.order] = [thread, step]
          if step % 50 == 0 { do { try game.preferences.flush() } catch { Issue.record("\(error)") } }
          let seen = game.preferences[.order]
          if seen.count != 2 { Issue.record("half a value: \(seen)") }
          if game.preferences[PreferenceKey("own \(thread)", default: -1)] != step {
            Issue.record("thread \(thread) lost \(step)")
          }
        }
      }
      try game.preferences.flush()
    }
    let (lives, order) = (game.preferences[.lives], game.preferences[.order])
    #expect(lives % 1_000 == 399 && order[1] == 399)
    #expect(try storedPreference("lives", of: game) == Archive.encode(lives))
    #expect(try storedPreference("order", of: game) == Archive.encode(order))
    for thread in 0..<6 { #expect(try storedPreference("own \(thread)", of: game) == Archive.encode(399)) }
    #expect(game.incidents.isEmpty)
    try game.close()
  }
}

/// A row's checksum as the store computes it, for a forger who knows the format.
enum PreferencesForgery {
  static func checksum(of payload: Data, name: String) -> Data {
    Data(ContentHash(of: Data("preference \(name)\0".utf8) + payload).bytes.prefix(8))
  }
}
