#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Money after an operator has put a backup back, over real HTTP: the devices bring what the bank lacks.
@Suite("Money after a restore, over real HTTP", .serialized, .hangLimit) struct RestoredBankTests {
  private static let gems = Currency("gems")

  /// How a backup is put back.
  enum Way: String, CaseIterable, CustomTestStringConvertible {
    /// Only the database, under the folder's witness.
    case database
    /// The whole folder, of which the operator tells the server.
    case marked
    /// The whole folder, of which nobody tells the server.
    case unmarked
    /// The folder is gone, and made again from a backup of the command, which was made while the server ran.
    case command
    /// The rows of a PostgreSQL database, of which nobody tells the server.
    case rows
    /// The same, under a server that goes on, which is told.
    case markedRows

    /// Those that are there.
    static let all = allCases.filter { !$0.isInPostgreSQL || TestDatabase.address != nil }

    var testDescription: String { rawValue }
    var isInPostgreSQL: Bool { self == .rows || self == .markedRows }
    /// Whether somebody knows of it before a device shows it.
    var isNoticed: Bool { self != .unmarked && self != .rows }
  }

  /// A server with its backup, and the games of players, which run only while a test wants them to.
  private final class Stage {
    let folder: URL
    private(set) var server: LiveServer
    let support: Client
    /// The schema of its database; nil for a file in its folder.
    private let schema: String?

    var data: URL { folder.appendingPathComponent("server") }
    private var backup: URL { folder.appendingPathComponent("backup") }
    private var file: URL { folder.appendingPathComponent("backup.tar") }

    init(in folder: URL, schema: String? = nil) async throws {
      (self.folder, self.schema) = (folder, schema)
      let data = folder.appendingPathComponent("server")
      server = try await Self.start(data, in: schema)
      support = Client(server: server, token: try ServerKeys(data: data).create("support"))
    }

    private static func start(_ data: URL, port: Int? = nil, in schema: String?) async throws -> LiveServer {
      let address = try address(of: schema)
      return try await LiveServer.start(
        data: data, port: port,
        change: { configuration in
          guard let address else { return }
          (configuration.database, configuration.databaseConnections) = (address, 2)
        })
    }

    private static func address(of schema: String?) throws -> String? {
      #if PostgreSQL
      return try schema.map { try TestDatabase.address(ofSchema: $0) }
      #else
      return nil
      #endif
    }

    /// Opens a player's game on a device, and connects it.
    func open(_ device: String) throws -> GameData {
      let game = try GameData.open("com.example.restored", at: folder.appendingPathComponent(device))
      game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: device)
      return game
    }

    /// Opens a second device's game, which joins the player of the first one.
    func open(_ device: String, joining game: GameData) async throws -> GameData {
      let other = try open(device)
      try await other.cloud.join(try await game.cloud.pairingCode())
      try await other.cloud.sync()
      return other
    }

    /// Stops the server while something is done with its folder.
    func restart(_ meanwhile: () async throws -> Void) async throws {
      let port = server.running.port
      try await server.stop()
      try await meanwhile()
      server = try await Self.start(data, port: port, in: schema)
    }

    func backUp() async throws {
      #if PostgreSQL
      if let schema { return try TestDatabase.backUp(schema: schema) }
      #endif
      let (data, file) = (data, file)
      _ = try await onThread { try CloudBackup.make(of: data, to: file) }
      try await restart { try FileManager.default.copyItem(at: data, to: backup) }
    }

    func putBack(_ way: Way) async throws {
      let manager = FileManager.default
      if way == .markedRows {
        try putBackRows()
        let address = try #require(try Self.address(of: schema))
        _ = try await RestoredCloud.beginEpoch(database: address)
        return
      }
      try await restart {
        switch way {
        case .database:
          let name = "cloud.sqlite"
          for file in try manager.contentsOfDirectory(atPath: data.path) where file.hasPrefix(name) {
            try manager.removeItem(at: data.appendingPathComponent(file))
          }
          try manager.copyItem(at: backup.appendingPathComponent(name), to: data.appendingPathComponent(name))
        case .marked, .unmarked:
          try manager.removeItem(at: data)
          try manager.copyItem(at: backup, to: data)
          if way == .marked { try RestoredCloud.mark(data: data) }
        case .command:
          try manager.removeItem(at: data)
          let (data, file) = (data, file)
          _ = try await onThread { try BackupRestore.restore(file, to: data) }
        case .rows, .markedRows: try putBackRows()
        }
      }
    }

    private func putBackRows() throws {
      #if PostgreSQL
      try TestDatabase.putBack(schema: #require(schema))
      #endif
    }

    /// Ends the wait of banks, without the server.
    func release(_ player: PlayerID?) async throws -> Int {
      try await RestoredCloud.release(data: data, database: Self.address(of: schema), player: player).released
    }

    func status(of player: String? = nil) throws -> BankStatus {
      try BankStatus(data: data, database: Self.address(of: schema), player: player.flatMap { PlayerID($0) })
    }

    /// The names of the devices for which banks wait.
    func missing() throws -> [String] { try status().players.flatMap { $0.devices.map(\.name) }.sorted() }

    func post(_ path: String, json: String = "{}") async throws -> Client.Answer {
      try await support.call("POST", "/v1/bank/\(path)", json: json)
    }
  }

  private func with(inPostgreSQL: Bool = false, _ body: (Stage) async throws -> Void) async throws {
    let schema = inPostgreSQL ? "s\(UUID().uuidString.lowercased().filter { $0 != "-" })" : nil
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder, schema: schema)
      do {
        try await body(stage)
      } catch {
        try await stage.server.stop()
        throw error
      }
      try await stage.server.stop()
    }
    #if PostgreSQL
    if let schema {
      try TestDatabase.drop(schema: schema)
      try TestDatabase.drop(schema: "\(schema)_backup")
    }
    #endif
  }

  private func sync(_ games: [GameData]) async throws {
    for game in games { try await game.cloud.sync() }
  }

  /// Syncs until each game shows this balance, with nothing pending.
  private func rest(_ games: [GameData], at total: Int) async throws {
    func seen() -> [Balance] { games.map { $0.wallet[Self.gems] } }
    try await until("\(total) gems, not \(seen())") {
      try await sync(games)
      return seen().allSatisfy { $0.total == total && $0.pending == 0 }
    }
  }

  @Test(
    "when all devices have reported, everybody has the money of before, whatever was put back",
    arguments: Way.all)
  func allReport(way: Way) async throws {
    try await with(inPostgreSQL: way.isInPostgreSQL) { stage in
      // Yesterday.
      var phone = try stage.open("phone")
      try phone.wallet.earn(90, Self.gems, for: "a quest")
      try await phone.cloud.sync()
      var tablet = try await stage.open("tablet", joining: phone)
      try await rest([phone, tablet], at: 90)
      try phone.close()
      try tablet.close()
      try await stage.backUp()

      // Today.
      phone = try stage.open("phone")
      tablet = try stage.open("tablet")
      try phone.wallet.earn(50, Self.gems, for: "a quest")
      try await until("the tablet's share") {
        try await sync([phone, tablet])
        return tablet.wallet[Self.gems].spendable >= 30
      }
      try tablet.wallet.spend(30, Self.gems, for: "a sword", goods: [Goods("sword")])
      try phone.wallet.claim(20, Self.gems, key: "gift", for: "welcome")
      try await rest([phone, tablet], at: 130)
      try phone.close()
      try tablet.close()
      try await stage.putBack(way)

      let isNoticed = way.isNoticed
      #expect(try (stage.status().epoch > 0) == isNoticed)
      #expect(try stage.missing() == (isNoticed ? ["phone", "tablet"] : []))
      phone = try stage.open("phone")
      try await until("the tablet to be waited for") {
        try await phone.cloud.sync()
        return try stage.missing() == ["tablet"]
      }
      #expect(try stage.status().epoch > 0)
      tablet = try stage.open("tablet")
      try await rest([phone, tablet], at: 130)
      try await until("the bank to open, and both to have the sword") {
        try await sync([phone, tablet])
        return try stage.status().frozen == 0
          && [phone, tablet].allSatisfy { try $0.wallet.goods() == [Goods("sword"): 1] }
      }
      let status = try stage.status()
      #expect(status.shortfalls.isEmpty && status.unreadable == 0)
      try await rest([phone, tablet], at: 130)
      // The gift isn't paid again, and all of the money can be spent.
      try tablet.wallet.claim(20, Self.gems, key: "gift", for: "welcome")
      try await rest([phone, tablet], at: 130)
      try await phone.wallet.spend(130, Self.gems, for: "a castle", askingBankFor: Patience.limit)
      try await rest([phone, tablet], at: 0)
      try phone.close()
      try tablet.close()
    }
  }

  @Test(
    "a cloud that was set back, of which nobody has told, freezes all players once one device shows it",
    arguments: Way.all.filter { !$0.isNoticed })
  func othersFreeze(way: Way) async throws {
    try await with(inPostgreSQL: way.isInPostgreSQL) { stage in
      var (ada, ben) = (try stage.open("ada"), try stage.open("ben"))
      for game in [ada, ben] { try game.wallet.earn(10, Self.gems, for: "a quest") }
      try await sync([ada, ben])
      for game in [ada, ben] { try game.close() }
      try await stage.backUp()
      (ada, ben) = (try stage.open("ada"), try stage.open("ben"))
      for game in [ada, ben] { try game.wallet.earn(5, Self.gems, for: "a quest") }
      try await sync([ada, ben])
      for game in [ada, ben] { try game.close() }
      try await stage.putBack(way)
      #expect(try stage.status().epoch == 0)

      ada = try stage.open("ada")
      try await until("Ada's bank to be open, and Ben's to be frozen") {
        try await ada.cloud.sync()
        return try stage.missing() == ["ben"]
      }
      let epoch = try stage.status().epoch
      #expect(epoch > 0)
      try await rest([ada], at: 15)
      ben = try stage.open("ben")
      try await rest([ben], at: 15)
      try await until("no bank to wait") {
        try await sync([ada, ben])
        return try stage.status().frozen == 0
      }
      #expect(try stage.status().epoch == epoch, "one restore begins one epoch")
      for game in [ada, ben] { try game.close() }
    }
  }

  @Test(
    "a lost device is listed until the bank is released; what it has when it comes back is booked as a shortfall",
    arguments: Way.all.filter { $0 == .marked || $0 == .markedRows })
  func oneIsLost(way: Way) async throws {
    try await with(inPostgreSQL: way.isInPostgreSQL) { stage in
      var phone = try stage.open("phone")
      try phone.wallet.earn(10, Self.gems, for: "a quest")
      try await phone.cloud.sync()
      let player = try await phone.cloud.player()
      var tablet = try await stage.open("tablet", joining: phone)
      try await rest([phone, tablet], at: 10)
      for game in [phone, tablet] { try game.close() }
      try await stage.backUp()
      (phone, tablet) = (try stage.open("phone"), try stage.open("tablet"))
      try phone.wallet.earn(90, Self.gems, for: "a quest")
      try await until("the tablet's share") {
        try await sync([phone, tablet])
        return tablet.wallet[Self.gems].spendable >= 25
      }
      for game in [phone, tablet] { try game.close() }
      try await stage.putBack(way)

      phone = try stage.open("phone")
      try await until("the phone to have reported") {
        try await phone.cloud.sync()
        return try stage.missing() == ["tablet"]
      }
      let listed = try #require(try stage.status(of: player).players.first)
      #expect(listed.player == PlayerID(player) && listed.devices.allSatisfy { $0.seenMilliseconds != nil })
      let released = try await stage.post("\(player)/release")
      #expect(released.status == 200 && released.json["released"] as? Bool == true)
      #expect(try await stage.post("\(player)/release").json["released"] as? Bool == false)
      #expect(try stage.status().frozen == 0 && stage.missing().isEmpty)

      // The bank has what it granted to the tablet, and grants it again.
      try await phone.wallet.spend(90, Self.gems, for: "a castle", askingBankFor: Patience.limit)
      tablet = try stage.open("tablet")
      try await until("the shortfall") {
        try await sync([phone, tablet])
        return try !stage.status().shortfalls.isEmpty
      }
      let shortfall = try #require(try stage.status().shortfalls["gems"])
      #expect(shortfall > 0)
      try await rest([phone, tablet], at: 10 + Int(shortfall))
      let account = try await stage.support.call("GET", "/v1/bank/\(player)")
      let orders = try #require(account.json["orders"] as? [[String: Any]])
      #expect(orders.compactMap { ($0["order"] as? [String: Any])?["kind"] as? String } == ["shortfall"])
      for game in [phone, tablet] { try game.close() }
    }
  }

  @Test("all banks are released page by page, with a server key, on a running server and in a stopped one's folder")
  func releaseAll() async throws {
    try await with { stage in
      for name in ["ada", "ben"] {
        let game = try stage.open(name)
        try game.wallet.earn(10, Self.gems, for: "a quest")
        try await game.cloud.sync()
        try game.close()
      }
      try await stage.backUp()
      try await stage.putBack(.marked)
      #expect(try stage.missing() == ["ada", "ben"])
      let unauthorized = try await stage.server.client.call("POST", "/v1/bank/release", json: "{}")
      #expect(unauthorized.status == 401)
      #expect(try await stage.post("release", json: "[]").status == 400)
      let page = try await stage.post("release")
      #expect(page.status == 200 && page.json["released"] as? Int == 2 && page.json["next"] == nil)
      #expect(try stage.status().frozen == 0)
      #expect(try await stage.post("release").json["released"] as? Int == 0)

      try await stage.putBack(.marked)
      #expect(try stage.status().frozen == 2)
      let data = stage.data
      await #expect(throws: ServerError.self) { _ = try await RestoredCloud.release(data: data, player: nil) }
      try await stage.restart {
        let unknown = PlayerID(high: 1, low: 1)
        await #expect(throws: ServerError.self) { _ = try await RestoredCloud.release(data: data, player: unknown) }
        let player = try #require(try stage.status().players.first?.player)
        #expect(try await RestoredCloud.release(data: data, player: player).released == 1)
        #expect(try stage.status().frozen == 1)
        #expect(try await RestoredCloud.release(data: data, player: nil).released == 1)
      }
      #expect(try stage.status().frozen == 0)
    }
  }

  @Test(
    "banks in PostgreSQL are released beside a running server, which goes on after another restore",
    .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
  func releaseRows() async throws {
    try await with(inPostgreSQL: true) { stage in
      for name in ["ada", "ben"] {
        let game = try stage.open(name)
        try game.wallet.earn(10, Self.gems, for: "a quest")
        try await game.cloud.sync()
        try game.close()
      }
      try await stage.backUp()
      try await stage.putBack(.markedRows)
      #expect(try stage.missing() == ["ada", "ben"])
      let unknown = PlayerID(high: 1, low: 1)
      await #expect(throws: ServerError.self) { _ = try await stage.release(unknown) }
      let player = try #require(try stage.status().players.first?.player)
      #expect(try await stage.release(player) == 1)
      #expect(try stage.status().frozen == 1)
      #expect(try await stage.release(nil) == 1)
      #expect(try stage.status().frozen == 0)
      #expect(try await stage.release(nil) == 0)
      let epoch = try stage.status().epoch
      try await stage.putBack(.markedRows)
      #expect(try stage.status().epoch >= epoch && stage.status().frozen == 2)
      let ada = try stage.open("ada")
      try await rest([ada], at: 10)
      try await until("Ada's bank to be open") {
        try await sync([ada])
        return try stage.missing() == ["ben"]
      }
      try await ada.wallet.spend(10, Self.gems, for: "a hat", askingBankFor: Patience.limit)
      try await rest([ada], at: 0)
      try ada.close()
    }
  }
}
#endif
