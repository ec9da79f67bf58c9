import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeSync

/// When a device polls because something holds its event streams back, and when it doesn't.
@Suite("Streams that are held back", .hangLimit) struct HeldStreamsTests {
  private static let head = "HTTP/1.1 200 OK\r\nKeepsake-Protocol: 1\r\nContent-Type: text/event-stream\r\n\r\n"

  /// The paths that a device asks for when it listens four times and each stream ends like this.
  private func paths(_ end: CannedServer.Reply, idleSeconds: Double = 600) async throws -> [String] {
    let server = try CannedServer { head, _ in
      if head.hasPrefix("GET /health") { return .http("200 OK") }
      return head.hasPrefix("GET /v1/events/next") ? .http("401 X") : end
    }
    defer { server.stop() }
    let id = DeviceID(high: 1, low: 1)
    let transport = HTTPTransport(
      CloudCredentials(
        url: server.url, device: id, player: PlayerID(high: 1, low: 1), container: ContainerID(high: 1, low: 1),
        token: "token"), eventIdleSeconds: idleSeconds)
    for _ in 1...4 {
      do {
        for try await _ in transport.events() {}
      } catch {
        #expect(error is TransportFailure)
      }
    }
    return server.requests.map { String($0.split(separator: " ")[1]) }.filter { $0 != "/health" }
  }

  private static let held = ["/v1/events", "/v1/events", "/v1/events/next", "/v1/events/next"]
  private static let stays = Array(repeating: "/v1/events", count: 4)

  @Test("streams that begin and end without an event are held back")
  func empty() async throws {
    #expect(try await paths(.answerAndClose(Self.head)) == Self.held)
    #expect(try await paths(.answerAndClose(Self.head + ": still here\n\n")) == Self.held)
  }

  @Test("streams that don't even begin until the device gives up are held back")
  func silent() async throws {
    #expect(try await paths(.answerAndHang(""), idleSeconds: 0.3) == Self.held)
  }

  @Test("streams with an event aren't held back, and neither are those that a broken network ends before they begin")
  func broken() async throws {
    #expect(try await paths(.answerAndClose(Self.head + "data: {\"seq\":1}\n\n")) == Self.stays)
    #if !canImport(FoundationNetworking) || os(Linux)
    // Elsewhere, Foundation ends the process.
    #expect(try await paths(.answerAndClose("HTTP/1.1 200 OK\r\nKee")) == Self.stays)
    #endif
    #expect(try await paths(.answerAndClose("")) == Self.stays)
  }
}
