import Dispatch
import Foundation
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import Keepsake

/// Deleting everything in the cloud while the device exchanges with it.
@Suite(.hangLimit) struct CloudDeletionTests {
  @Test("what was certain in the cloud isn't after its deletion, whatever an exchange from before says later")
  func lateResponse() async throws {
    let response = ExchangeResponse(
      outcome: nil, changes: [], contents: [], wallet: nil, cursor: Cursor(epoch: 1, seq: 0, mark: 1), more: false,
      serverTimeMilliseconds: 0)
    let body = String(decoding: try JSONEncoder().encode(response), as: UTF8.self)
    let isDeleted = DispatchSemaphore(value: 0)
    let exchanges = Mutex(0)
    let server = try CannedServer { head, _ in
      if head.hasPrefix("POST /v1/devices ") { return .registered(as: 1) }
      if head.hasPrefix("DELETE /v1/player ") { return .http("204 No Content") }
      guard head.hasPrefix("POST /v1/exchange ") else { return .http("503 X") }
      let number = exchanges.withLock { count in
        count += 1
        return count
      }
      guard number == 1 else { return .http("503 X") }
      isDeleted.wait()
      return .http("200 OK", body: body)
    }
    defer { server.stop() }
    let game = try Device().open()
    defer { end(game) }
    game.cloud.connect(.server(server.url, appKey: "key"))
    try await until { server.requests.contains { $0.hasPrefix("POST /v1/exchange ") } }
    try await game.cloud.deleteEverythingInTheCloud()
    isDeleted.signal()
    await #expect(throws: GameDataError.self) { try await game.cloud.sync() }
    #expect(try game.core.store.read { try $0.facts().isRefused })
  }
}
