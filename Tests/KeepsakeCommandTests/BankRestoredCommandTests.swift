#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeCommand
@testable import KeepsakeServer

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// `keepsake bank restored`, `status` and `release`, with a real server's folder.
@Suite("keepsake bank after a restore", .serialized, .hangLimit) struct BankRestoredCommandTests {
  private static let chain = ChainID(high: 0, low: 1)

  /// Runs a server on a folder while `body` runs.
  private func serving(
    _ data: URL, database: String? = nil, _ body: (RunningServer) async throws -> Void
  ) async throws {
    var configuration = ServerConfiguration(data: data, port: try TestPort.unused())
    configuration.database = database
    let limit = Int(Patience.limit.components.seconds)
    SyncLimits.waitLonger()
    (configuration.stopSeconds, configuration.idleSeconds, configuration.slowGraceSeconds) = (limit, limit, limit)
    let (started, starting) = AsyncStream.makeStream(of: RunningServer.self)
    let task = Task { [configuration] in
      defer { starting.finish() }
      try await KeepsakeServer.run(configuration: configuration, signals: []) { starting.yield($0) }
    }
    var running: RunningServer?
    for await server in started {
      running = server
      break
    }
    do {
      try await body(try #require(running))
    } catch {
      running?.stop()
      _ = await task.result
      throw error
    }
    running?.stop()
    try await task.value
  }

  /// Registers a player who earns money, and returns the player's id.
  private func play(_ name: String, at server: RunningServer) async throws -> PlayerID {
    let account = HTTPAccount(url: server.url, appKey: try #require(server.appKeys.first))
    let credentials = try await account.register(name: name)
    let earned = WalletOperation(
      id: OperationID(high: 7, low: 7), kind: .earn, currency: "gems", amount: 10, reason: "test")
    let offer = WalletOffer(chain: Self.chain, base: ChainHead(emptyChain: Self.chain), operations: [earned])
    _ = try await HTTPTransport(credentials).exchange(ExchangeRequest(cursor: .start, wallet: offer, limit: 10))
    return credentials.player
  }

  @Test("a folder is marked, its status lists who is waited for, and players are released with and without a server")
  func restored() async throws {
    let folder = try TemporaryFolder()
    let url = folder.url.appendingPathComponent("server")
    let data = ["--data", url.path]
    var players: [PlayerID] = []
    try await serving(url) { server in
      for name in ["phone\u{202E}", "tablet", "console"] { players.append(try await play(name, at: server)) }
      #expect(await status(of: BankStatusCommand.self, data) == 0)
      // A server is running.
      #expect(await status(of: BankRestoredCommand.self, data) == 75)
      #expect(await status(of: BankReleaseCommand.self, data + ["--all"]) == 75)
    }
    #expect(BankStatusCommand.lines(of: try BankStatus(data: url)).contains("no player's money is frozen"))
    #expect(await status(of: BankRestoredCommand.self, data) == 0)
    #expect(await status(of: BankRestoredCommand.self, data + ["--json"]) == 0)
    let marked = BankStatusCommand.lines(of: try BankStatus(data: url))
    #expect(marked.contains { $0.hasPrefix("marked as restored") })

    let key = folder.url.appendingPathComponent("key")
    try Data((try ServerKeys(data: url).create("support") + "\n").utf8).write(to: key)
    try await serving(url) { server in
      let lines = BankStatusCommand.lines(of: try BankStatus(data: url))
      #expect(lines.contains("frozen: the money of 3 players"))
      for player in players { #expect(lines.contains("player \(player)")) }
      #expect(lines.contains { $0.hasPrefix("  waits for tablet (") && $0.contains("last seen ") })
      #expect(!lines.joined().contains("\u{202E}"))
      #expect(await status(of: BankStatusCommand.self, data + ["--json"]) == 0)
      #expect(await status(of: BankStatusCommand.self, data + ["--player", "\(players[0])"]) == 0)
      #expect(await status(of: BankStatusCommand.self, data + ["--player", "\(PlayerID(high: 1, low: 1))"]) == 66)

      let address = ["--url", server.url.absoluteString, "--key-file"]
      let player = ["--player", "\(players[0])"]
      #expect(await status(of: BankReleaseCommand.self, address + [key.path] + player) == 0)
      #expect(try BankStatus(data: url).frozen == 2)
      let wrong = folder.url.appendingPathComponent("wrong")
      try Data("srv_wrong".utf8).write(to: wrong)
      #expect(await status(of: BankReleaseCommand.self, address + [wrong.path] + player) == 77)
      try Data(" \n".utf8).write(to: wrong)
      #expect(await status(of: BankReleaseCommand.self, address + [wrong.path] + player) == 65)
      #expect(await status(of: BankReleaseCommand.self, address + [wrong.path + "x"] + player) == 66)
      let unknown = ["--player", "\(PlayerID(high: 1, low: 1))"]
      #expect(await status(of: BankReleaseCommand.self, address + [key.path] + unknown) == 66)
    }
    #expect(await status(of: BankReleaseCommand.self, data + ["--player", "\(players[1])", "--json"]) == 0)
    #expect(try BankStatus(data: url).frozen == 1)
    try await serving(url) { server async throws in
      let arguments = ["--url", server.url.absoluteString, "--key-file", key.path, "--all", "--json"]
      #expect(await status(of: BankReleaseCommand.self, arguments) == 0)
      #expect(try BankStatus(data: url).frozen == 0)
    }
    #expect(await status(of: BankReleaseCommand.self, data + ["--all"]) == 0)
  }

  #if PostgreSQL
  private static let postgreSQL = ProcessInfo.processInfo.environment["KEEPSAKE_POSTGRES"]

  @Test(
    "with PostgreSQL, all of it is done beside a running server, and nothing in its folder",
    .enabled(if: postgreSQL != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
  func besideServers() async throws {
    let address = try #require(Self.postgreSQL)
    let schema = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let connection = try PostgreSQLConnection(PostgreSQLSettings(address))
    _ = try connection.run([PostgreSQLStatement("CREATE SCHEMA \(schema)")])
    let database = address + (address.contains("?") ? "&" : "?") + "options=-csearch_path%3D\(schema)"
    let folder = try TemporaryFolder()
    let url = folder.url.appendingPathComponent("server")
    let data = ["--data", url.path]
    let there = data + ["--database", database]
    try await serving(url, database: database) { server in
      var players: [PlayerID] = []
      for name in ["phone", "tablet", "console"] { players.append(try await play(name, at: server)) }
      #expect(await status(of: BankStatusCommand.self, there) == 0)
      #expect(
        BankStatusCommand.lines(of: try BankStatus(data: url, database: database)) == [
          "never restored", "no player's money is frozen",
        ])
      // Without the address, it would be about a cloud in the folder, where there is none.
      #expect(await status(of: BankRestoredCommand.self, data) == 66)
      #expect(await status(of: BankRestoredCommand.self, there) == 0)
      #expect(await status(of: BankRestoredCommand.self, there + ["--json"]) == 0)
      let restored = try BankStatus(data: url, database: database)
      #expect(restored.epoch > 0 && restored.frozen == 3 && !restored.isMarked)
      #expect(await status(of: BankStatusCommand.self, there + ["--json"]) == 0)
      #expect(await status(of: BankStatusCommand.self, there + ["--player", "\(players[0])"]) == 0)
      #expect(await status(of: BankStatusCommand.self, there + ["--player", "\(PlayerID(high: 1, low: 1))"]) == 66)
      #expect(await status(of: BankReleaseCommand.self, there + ["--player", "\(players[0])"]) == 0)
      #expect(try BankStatus(data: url, database: database).frozen == 2)
      #expect(await status(of: BankReleaseCommand.self, there + ["--all", "--json"]) == 0)
      #expect(try BankStatus(data: url, database: database).frozen == 0)
      let nowhere = data + ["--database", "postgres://127.0.0.1:1/keepsake"]
      #expect(await status(of: BankStatusCommand.self, nowhere) == 74)
      #expect(await status(of: BankRestoredCommand.self, nowhere) == 74)
      #expect(await status(of: BankReleaseCommand.self, nowhere + ["--all"]) == 74)
    }
    _ = try connection.run([PostgreSQLStatement("DROP SCHEMA \(schema) CASCADE")])
  }
  #endif

  @Test("release takes one cloud and either one player or all; no command makes a folder")
  func arguments() async throws {
    let folder = try TemporaryFolder()
    let data = ["--data", folder.url.appendingPathComponent("nowhere").path]
    let address = ["--url", "http://127.0.0.1:1", "--key-file", "key"]
    let player = ["--player", "\(PlayerID(high: 1, low: 1))"]
    let (url, key) = (Array(address.prefix(2)), Array(address.suffix(2)))
    let all = ["--all"]
    let parts: [[[String]]] = [
      [], [data], [player], [all], [data, all, player], [data, address, all], [url, all], [key, all],
      [["--database", "postgres:"], url, key, all],
      [data, ["--player", "ada"]], [["--url", "server"], key, all],
    ]
    for wrong in parts.map({ Array($0.joined()) }) {
      #expect(await status(of: BankReleaseCommand.self, wrong) == 64, "\(wrong)")
    }
    #expect(await status(of: BankReleaseCommand.self, data + ["--all"]) == 66)
    #expect(await status(of: BankRestoredCommand.self, data) == 66)
    #expect(await status(of: BankStatusCommand.self, data) == 66)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
  }

  @Test("a status names the first hundred players, and counts the others")
  func many() {
    let players = (1...BankStatus.maximumPlayers).map { number in
      BankStatus.Player(
        container: ContainerID(high: 1, low: UInt64(number)), devices: [BankStatus.Device(name: "")],
        missing: ["gems": 5], waiting: [:])
    }
    let lines = BankStatusCommand.lines(
      of: BankStatus(
        epoch: 7, generation: 8, isMarked: false, frozen: players.count + 1, players: players,
        shortfalls: ["gems": 7], unreadable: 1))
    #expect(lines.contains("and 1 further player"))
    #expect(lines.contains("container \(ContainerID(high: 1, low: 1)), without devices  missing so far: 5 gems"))
    #expect(lines.contains("  waits for a device, never seen"))
    #expect(lines.contains("missing, and left to players: 7 gems"))
    #expect(lines.contains("1 bank can't be read"))
  }
}
#endif
