#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// What commands do with one of the databases over which players are spread.
@Suite(
  "Commands with one of several databases", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct ShardCommandTests {
  @Test("a restored cloud begins its epoch in home, for the players of all databases, and in no other database")
  func restored() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      let players = (1...6).map { ContainerID(high: 7, low: $0) }
      for player in players { try await server.addGem(to: player, mark: 1) }
      #expect(server.bankEpoch == 0)
      let epoch = try await RestoredCloud.beginEpoch(database: #require(lab.addresses["home"]))
      for storage in server.all { try await storage.refresh() }
      #expect(epoch > 0 && server.bankEpoch == epoch)
      let shard = await #expect(throws: ServerError.self) {
        _ = try await RestoredCloud.beginEpoch(database: #require(lab.addresses["two"]))
      }
      #expect(shard?.code == .configuration)
      #expect(try lab.run("SELECT 1::bigint FROM number WHERE name = $1", [.name("bankEpoch")], in: "two").first == nil)
      for player in players { #expect(try await server.gems(of: player) == 1) }
    }
  }

  @Test("what would look at the players of one database only is refused, and changes nothing")
  func refused() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      let player = ContainerID(high: 7, low: 1)
      try await server.addGem(to: player, mark: 1)
      let temporary = try TemporaryFolder()
      for name in ["home", "two"] {
        let address = try #require(lab.addresses[name])
        let status = #expect(throws: ServerError.self) { _ = try BankStatus(data: temporary.url, database: address) }
        #expect(status?.code == .configuration)
        let release = await #expect(throws: ServerError.self) {
          _ = try await RestoredCloud.release(data: temporary.url, database: address, player: nil)
        }
        #expect(release?.code == .configuration)
        let data = temporary.url.appendingPathComponent(name)
        let request = CloudMove.Request(data: data, address: address)
        let back = await #expect(throws: ServerError.self) { _ = try await CloudMove.moveBack(request) }
        #expect(back?.code == .unusableFile)
        #expect(try lab.run("SELECT 1::bigint FROM cloud_move", in: name).first == nil)
      }
      try await server.addGem(to: player, mark: 2)
      #expect(try await server.gems(of: player) == 2)
      withExtendedLifetime(temporary) {}
    }
  }

  @Test("old decisions of a player who has left a database aren't packed there")
  func packing() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      let player = ContainerID(high: 7, low: 1)
      try await server.addGem(to: player, mark: 1)
      let name = try await server.directory.shard(of: player)
      let storage = try #require(server.shards[name])
      func revision() throws -> Int64? {
        try lab.run("SELECT revision FROM container WHERE id = $1", [.bytes(player.bytes)], in: name).first?.int(0)
      }
      let pack = { @Sendable (transaction: PostgreSQLTransaction) in
        try PostgreSQLPacking(player, in: transaction).packOldest(keeping: 0)
      }
      let before = try #require(try revision())
      try await storage.transaction(pack)
      #expect(try revision() == before + 1)
      try lab.run("UPDATE container SET revision = -revision - 1 WHERE id = $1", [.bytes(player.bytes)], in: name)
      try await storage.transaction(pack)
      #expect(try revision() == -before - 2)
    }
  }
}
#endif
