#if Cloud && os(Linux)
import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeStore
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeServer

/// A phone and a tablet of one player earn and spend without a pause, and they and the server are killed at random
/// moments. What the games wrote down is compared with what the bank has.
@Suite("Money over HTTP under SIGKILL", .serialized, .hangLimit) struct MoneyKillTests {
  /// Rounds of one player; then another one begins.
  private static let roundsOfPlayer = 20
  private static let players = (TestDepth.moneyKills + roundsOfPlayer - 1) / roundsOfPlayer
  fileprivate static let names = ["phone", "tablet"]
  /// How much each game does before the next kills.
  private static let mostOperations = 15
  private static let longestMoment = 40
  /// How long the games may be without a server.
  private static let longestOutage = 200

  @Test("each operation counts once, and everyone has the same money, whoever is killed", arguments: 0..<players)
  func kills(player: Int) async throws {
    let rounds = min(Self.roundsOfPlayer, TestDepth.moneyKills - player * Self.roundsOfPlayer)
    let folder = try TemporaryFolder.inMemory("money")
    defer { withExtendedLifetime(folder) {} }
    let data = folder.url.appendingPathComponent("server")
    var random = SeededGenerator(seed: UInt64(player))
    var server = try await ServerProcess.start(data: data)
    var games: [SpendingGame] = []
    let devices: [RestingDevice]
    do {
      try await Self.pair(in: folder.url, with: [server.url, server.url])
      games = try Self.names.map {
        try SpendingGame.start($0, in: folder.url, with: server.url, seed: random.next())
      }
      for _ in 0..<rounds {
        for game in games { try await game.makes(Int.random(in: 1...Self.mostOperations, using: &random)) }
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...Self.longestMoment, using: &random)))
        let killed = games.indices.filter { _ in random.once(in: 2) }
        if killed.isEmpty || random.once(in: 2) {
          let port = server.port
          await server.kill()
          try await Self.restart(killed, of: &games, in: folder.url, with: [server.url, server.url], using: &random)
          try await Task.sleep(for: .milliseconds(Int.random(in: 0...Self.longestOutage, using: &random)))
          server = try await ServerProcess.start(data: data, port: port)
        } else {
          try await Self.restart(killed, of: &games, in: folder.url, with: [server.url, server.url], using: &random)
        }
      }
      for game in games { await game.kill() }
      devices = try await Self.rest(in: folder.url, with: [server.url, server.url])
    } catch {
      for game in games { await game.kill() }
      await server.kill()
      throw error
    }
    await server.end(by: SIGTERM)
    let bank = try await BankLedger(TestDatabase.storage(of: data), of: try #require(devices.first?.container))
    let notes = try Self.names.map { try WalletNotes.read(SpendingGame.notes(of: $0, in: folder.url)) }
    Self.check(notes, devices, bank)
    print("player \(player): killed in \(rounds) rounds, \(notes.joined().count { $0.event == .returned }) operations")
  }

  fileprivate static func restart(
    _ killed: [Int], of games: inout [SpendingGame], in folder: URL, with servers: [URL],
    using random: inout SeededGenerator
  ) async throws {
    for index in killed { await games[index].kill() }
    for index in killed {
      games[index] = try SpendingGame.start(games[index].name, in: folder, with: servers[index], seed: random.next())
    }
  }

  /// - Parameter servers: The server of each device.
  private static func open(in folder: URL, with servers: [URL]) throws -> [GameData] {
    try zip(names, servers).map { name, server in
      let game = try GameData.open(SpendingGame.identifier, at: SpendingGame.data(of: name, in: folder))
      game.cloud.connect(.server(server, appKey: ServerProcess.appKey), deviceName: name)
      return game
    }
  }

  fileprivate static func pair(in folder: URL, with servers: [URL]) async throws {
    let games = try open(in: folder, with: servers)
    try await games[0].cloud.sync()
    try await games[1].cloud.join(try await games[0].cloud.pairingCode())
    try await games[1].cloud.sync()
    for game in games { try game.close() }
  }

  /// Opens the data that the killed games left, and syncs until nothing changes any more.
  fileprivate static func rest(in folder: URL, with servers: [URL]) async throws -> [RestingDevice] {
    let games = try open(in: folder, with: servers)
    var before: [WalletState?] = []
    try await until("the devices come to rest") {
      for game in games { try await game.cloud.sync() }
      let now = try games.map { game in try game.core.store.read { try $0.wallet() } }
      defer { before = now }
      return now == before && now.allSatisfy { $0?.undecided.allSatisfy(\.isEmpty) == true }
    }
    let devices = try zip(names, games).map { try RestingDevice($0, $1) }
    for game in games { try game.close() }
    return devices
  }

  // MARK: What has to be

  fileprivate static func check(_ notes: [[WalletNote]], _ devices: [RestingDevice], _ bank: BankLedger) {
    var claimed: Set<String> = []
    var returned: Set<OperationID> = []
    var refused: Set<OperationID> = []
    var planned: [OperationID: WalletOperation] = [:]
    for (device, its) in zip(devices, notes) {
      var claimedHere: Set<String> = []
      for note in its {
        if let key = note.operation.kind.key {
          if note.event == .returned { claimedHere.insert(key) }
          continue
        }
        switch note.event {
        case .planned: planned[note.operation.id] = note.operation
        case .returned: returned.insert(note.operation.id)
        case .refused: refused.insert(note.operation.id)
        }
      }
      claimed.formUnion(claimedHere)
      // Nothing but claims is noticed: no purchase was declined.
      let noticed = device.notices.compactMap(\.key)
      #expect(noticed.count == device.notices.count, "\(device.name)")
      #expect(Set(noticed).count == noticed.count, "\(device.name): a claim was noticed twice")
      #expect(claimedHere.isSubset(of: noticed), "\(device.name): a claim wasn't noticed")
    }
    #expect(!returned.isEmpty && !claimed.isEmpty)

    // Every operation.
    var money: [String: Int64] = [:]
    var goods: [String: Int] = [:]
    func count(_ operation: WalletOperation) {
      for movement in operation.movements { money[movement.currency, default: 0] += movement.earned - movement.spent }
      if operation.kind.key != nil { money[operation.currency, default: 0] += operation.amount }
      for good in operation.goods { goods[good, default: 0] += 1 }
    }
    for (id, operation) in planned {
      let verdict = bank.verdicts[id]
      if returned.contains(id) {
        #expect(verdict == .accepted, "\(operation) is \(verdict?.rawValue ?? "lost")")
      } else if refused.contains(id) {
        #expect(verdict == nil, "\(operation) was refused, and the bank has it")
      } else {
        #expect(verdict == nil || verdict == .accepted, "\(operation)")
      }
      if verdict == .accepted { count(operation) }
    }
    var paid: [String] = []
    for (id, operation) in bank.operations {
      if let key = operation.kind.key {
        guard bank.verdicts[id] == .accepted else { continue }
        paid.append(key)
        count(operation)
      } else if operation.effect != .giveBack {
        #expect(planned[id]?.fingerprint == operation.fingerprint, "\(operation) is another one at the bank")
      }
    }
    #expect(Set(paid).count == paid.count, "a payment was made twice")
    #expect(Set(paid) == Set(bank.paid) && claimed.isSubset(of: paid))
    var noticed: [String] = []
    for notice in devices.flatMap(\.notices) where notice.isPaid { if let key = notice.key { noticed.append(key) } }
    #expect(noticed.sorted() == paid.sorted())

    // And what they make together.
    #expect(bank.state.waiting.isEmpty)
    #expect(bank.state.pool.values.allSatisfy { $0 >= 0 })
    #expect(bank.state.chains.values.flatMap(\.totals.values).allSatisfy { $0.rights >= 0 })
    #expect(bank.goods == goods)
    for currency in SpendingGame.currencies {
      let balance = Bank(bank.state).balance(currency.name)
      #expect(balance == money[currency.name] ?? 0 && balance >= 0, "\(currency.name)")
      var held: Int64 = bank.state.pool[currency.name] ?? 0
      for device in devices { held += Int64(device.balances[currency]?.spendable ?? 0) }
      #expect(balance == held, "\(currency.name)")
      for device in devices {
        #expect(device.balances[currency]?.total == Int(balance), "\(device.name), \(currency.name)")
        #expect(device.balances[currency]?.pending == 0)
      }
    }
    for device in devices { #expect(device.goods == goods, "\(device.name)") }
  }
}

/// What a player sees of the wallet on a device on which nothing changes any more.
private struct RestingDevice {
  struct Notice {
    /// Nil for anything but a claim.
    var key: String?
    var isPaid: Bool
  }
  let name: String
  let container: ContainerID?
  let balances: [Currency: Balance]
  let goods: [String: Int]
  let notices: [Notice]

  init(_ name: String, _ game: GameData) throws {
    self.name = name
    container = try game.core.store.read { try $0.facts().container }
    balances = Dictionary(uniqueKeysWithValues: SpendingGame.currencies.map { ($0, game.wallet[$0]) })
    goods = Dictionary(uniqueKeysWithValues: try game.wallet.goods().map { ($0.key.name, $0.value) })
    notices = try game.wallet.notices().map { notice in
      guard case .claimed(let key) = notice.kind else { return Notice(key: nil, isPaid: false) }
      return Notice(key: key, isPaid: notice.verdict == .paid)
    }
  }
}

/// Everything that a bank has, read from the storage of a server that has ended.
private struct BankLedger {
  var verdicts: [OperationID: WalletDecision.Verdict] = [:]
  /// Those whose details are kept: all but old ones without goods.
  var operations: [OperationID: WalletOperation] = [:]
  var paid: [String] = []
  let state: BankState
  let goods: [String: Int]

  init(_ storage: any CloudStorage, of container: ContainerID) async throws {
    state = try await storage.look(at: container) { try $0.bank() }
    goods = Dictionary(
      uniqueKeysWithValues: try await storage.look(at: container) { try $0.goods(changedAfter: 0, limit: 1_000) }
        .map { ($0.name, Int($0.count)) })
    var place: PlayerExport.Position? = .decisions(after: nil)
    while let next = place {
      let page = try await storage.exported(next, of: container)
      for line in page.lines {
        if let decided = line.operation {
          verdicts[decided.operation.id] = decided.verdict
          operations[decided.operation.id] = decided.operation
        }
        if let decided = line.decision { verdicts[decided.id] = decided.verdict }
        if let claim = line.claim { paid.append(claim.key) }
      }
      place = page.next
    }
    try await storage.close()
  }
}

#if PostgreSQL
/// The same with a server for each device over one PostgreSQL database: either server is killed, or the database with
/// all its processes, or connections are cut, or the database stands still for a moment.
@Suite("Money at two servers over one PostgreSQL under SIGKILL", .serialized, .hangLimit)
struct PostgreSQLKillTests {
  private static let roundsOfPlayer = 20
  private static let players = (TestDepth.postgresKills + roundsOfPlayer - 1) / roundsOfPlayer
  private static let mostOperations = 15
  private static let longestMoment = 300

  private enum Trouble: Int, CaseIterable { case one, other, both, database, connections, standstill }

  @Test(
    "each operation counts once, and everyone has the same money, whoever is killed",
    .enabled(if: players > 0, "KEEPSAKE_POSTGRES_KILLS isn't set"), arguments: 0..<max(1, players))
  func kills(player: Int) async throws {
    let rounds = min(Self.roundsOfPlayer, TestDepth.postgresKills - player * Self.roundsOfPlayer)
    let folder = try TemporaryFolder.inMemory("money")
    defer { withExtendedLifetime(folder) {} }
    var random = SeededGenerator(seed: UInt64(player))
    let schema = "kills\(player)"
    let address = try TestDatabase.address(ofSchema: schema)
    let data = ["one", "other"].map { folder.url.appendingPathComponent($0) }
    var servers = [try await ServerProcess.start(data: data[0], database: address)]
    try FileManager.default.createDirectory(at: data[1], withIntermediateDirectories: true)
    try FileManager.default.copyItem(
      at: data[0].appendingPathComponent("secret"), to: data[1].appendingPathComponent("secret"))
    servers.append(try await ServerProcess.start(data: data[1], database: address))
    let urls = servers.map(\.url)
    var games: [SpendingGame] = []
    let devices: [RestingDevice]
    var counts: [Trouble: Int] = [:]
    do {
      try await MoneyKillTests.pair(in: folder.url, with: urls)
      games = try zip(MoneyKillTests.names, urls).map {
        try SpendingGame.start($0, in: folder.url, with: $1, seed: random.next())
      }
      for _ in 0..<rounds {
        for game in games { try await game.makes(Int.random(in: 1...Self.mostOperations, using: &random)) }
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...Self.longestMoment, using: &random)))
        let trouble = Trouble.allCases[Int.random(in: 0..<Trouble.allCases.count, using: &random)]
        counts[trouble, default: 0] += 1
        let killed = games.indices.filter { _ in random.once(in: 4) }
        try await MoneyKillTests.restart(killed, of: &games, in: folder.url, with: urls, using: &random)
        switch trouble {
        case .one, .other, .both:
          let indices = trouble == .both ? [0, 1] : [trouble.rawValue]
          for index in indices { await servers[index].kill() }
          try await Task.sleep(for: .milliseconds(Int.random(in: 0...Self.longestMoment, using: &random)))
          for index in indices {
            servers[index] = try await ServerProcess.start(
              data: data[index], port: servers[index].port, database: address)
          }
        case .database: try TestDatabase.control("crash")
        case .connections: try TestDatabase.control("cut")
        case .standstill: try TestDatabase.control("stand-still")
        }
      }
      for game in games { await game.kill() }
      devices = try await MoneyKillTests.rest(in: folder.url, with: urls)
    } catch {
      for game in games { await game.kill() }
      for server in servers { await server.kill() }
      throw error
    }
    for server in servers { await server.end(by: SIGTERM) }
    let storage = try await PostgreSQLStorage(TestDatabase.settings(address), connections: 2)
    let bank = try await BankLedger(storage, of: try #require(devices.first?.container))
    let notes = try MoneyKillTests.names.map { try WalletNotes.read(SpendingGame.notes(of: $0, in: folder.url)) }
    MoneyKillTests.check(notes, devices, bank)
    try TestDatabase.drop(schema: schema)
    let said = counts.map { "\($0.key) \($0.value)" }.sorted().joined(separator: ", ")
    print("player \(player): \(said); \(notes.joined().count { $0.event == .returned }) operations")
  }
}
#endif
#endif
