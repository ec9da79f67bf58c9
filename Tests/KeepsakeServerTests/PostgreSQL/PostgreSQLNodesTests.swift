#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

/// Several servers over one database, and devices of one player at each.
@Suite(
  "Several servers over one PostgreSQL database", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLNodesTests {
  /// Two servers with the same secrets and the same database, each with a folder of its own.
  private struct Nodes {
    let one: LiveServer
    let other: LiveServer
    let schema: String

    /// How many servers hear the others.
    func listening() throws -> Int { try count("count(*)") }

    /// Ends the sessions with which servers hear each other, as an administrator or a broken network does.
    func deafen() throws -> Int { try count("count(pg_terminate_backend(pid))") }

    private func count(_ sessions: String) throws -> Int {
      let connection = try PostgreSQLConnection(TestDatabase.settings(try TestDatabase.address(ofSchema: schema)))
      let counted = try connection.run([
        PostgreSQLStatement(
          """
          SELECT \(sessions) FROM pg_stat_activity WHERE query = 'LISTEN keepsake' AND application_name = $1
          """, [.text(schema)])
      ])
      return Int(try #require(counted[0].first).int(0))
    }
  }

  private func with(heartbeatSeconds: Int = 300, _ body: (Nodes, URL) async throws -> Void) async throws {
    let schema = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let address = try TestDatabase.address(ofSchema: schema) + "&application_name=\(schema)"
    try await TemporaryFolder.with { folder in
      let (first, second) = (folder.appendingPathComponent("one"), folder.appendingPathComponent("other"))
      func start(_ data: URL) async throws -> LiveServer {
        try await LiveServer.start(
          data: data,
          change: { configuration in
            configuration.database = address
            (configuration.databaseConnections, configuration.databaseStandIn) = (2, TestDatabase.standIn)
            configuration.heartbeatSeconds = heartbeatSeconds
          })
      }
      let one = try await start(first)
      try FileManager.default.createDirectory(at: second, withIntermediateDirectories: true)
      for name in ["secret", "app-key"] {
        try FileManager.default.copyItem(
          at: first.appendingPathComponent(name), to: second.appendingPathComponent(name))
      }
      let other = try await start(second)
      do {
        try await body(Nodes(one: one, other: other, schema: schema), folder)
      } catch {
        try await one.stop()
        try await other.stop()
        throw error
      }
      try await one.stop()
      try await other.stop()
    }
    try TestDatabase.drop(schema: schema)
  }

  @Test("a code made at one server is good at the other, and what is saved at either is soon read at the other")
  func playedAtBoth() async throws {
    try await with { nodes, folder in
      let first = try await Device.register(with: nodes.one, in: folder)
      let second = try await first.pair(with: nodes.other, in: folder)
      try await first.sync.start()
      try await second.sync.start()
      for (round, count) in [100, 200_000, 3_000_000].enumerated() {
        let bytes = saveBytes(count, seed: UInt64(round))
        let (writer, reader) = round % 2 == 0 ? (first, second) : (second, first)
        _ = try writer.save(bytes, to: "slot \(round)")
        try await reader.until("save \(round) at the other server") { try reader.heads(of: "slot \(round)") == [bytes] }
      }
      try await first.close()
      try await second.close()
    }
  }

  /// What a stream of a device has said so far.
  private struct Stream {
    let seqs = Shared<[UInt64]>([])
    let hasEnded = Shared(false)

    init(of device: CloudCredentials) {
      Task { [seqs, hasEnded] in
        do {
          for try await event in HTTPTransport(device).events() { seqs.value.append(event.seq) }
        } catch {
          // The server has stopped.
        }
        hasEnded.value = true
      }
    }
  }

  /// Returns two devices of a player, one at each server.
  private func devices(at nodes: Nodes) async throws -> (CloudCredentials, CloudCredentials) {
    let phone = try await HTTPAccount(url: nodes.one.url, appKey: nodes.one.appKey).register(name: "Phone")
    let code = try await HTTPAccount.pairingCode(for: phone).code
    let other = HTTPAccount(url: nodes.other.url, appKey: nodes.other.appKey)
    return (phone, try await other.join(code: code, name: "Tablet"))
  }

  private func change(_ number: Int64, by device: CloudCredentials) async throws -> UInt64 {
    let cell = CellUpdate(
      key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.int(number))))
    let response = try await HTTPTransport(device).exchange(ExchangeRequest(cursor: .start, cells: [cell], limit: 9))
    return response.cursor.seq
  }

  @Test("a stream at one server hears what changes at the other, also while the servers can't hear each other")
  func deaf() async throws {
    try await with { nodes, _ in
      let (phone, tablet) = try await devices(at: nodes)
      let stream = Stream(of: tablet)
      try await until("the first event") { stream.seqs.value == [0] }
      for number in 1...6 as ClosedRange<Int64> {
        if number % 2 == 0, !TestDatabase.isStandIn {
          try await until("both listen") { try nodes.listening() == 2 }
          #expect(try nodes.deafen() == 2)
        }
        let seq = try await change(number, by: phone)
        try await until("the event of change \(number)") { stream.seqs.value.last == seq }
      }
    }
  }

  @Test("a device that is removed at one server hears nothing more at the other, and a deleted player is gone at both")
  func removed() async throws {
    try await with { nodes, _ in
      let (phone, lost) = try await devices(at: nodes)
      let stream = Stream(of: lost)
      try await until("the first event") { stream.seqs.value == [0] }
      try await HTTPAccount.remove(lost.device, for: phone)
      try await until("the stream ends") { stream.hasEnded.value }
      _ = try await change(1, by: phone)
      #expect(stream.seqs.value == [0])
      await refused(2, by: lost)
      try await HTTPAccount.deletePlayer(for: phone)
      await refused(3, by: phone)
    }
  }

  private func refused(_ number: Int64, by device: CloudCredentials) async {
    let error = await #expect(throws: TransportFailure.self) { try await change(number, by: device) }
    #expect(error?.kind == .unauthorized)
    #expect(error?.message.contains("retired") == true)
  }
}
#endif
