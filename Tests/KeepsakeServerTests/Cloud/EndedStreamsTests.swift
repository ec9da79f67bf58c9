#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeServer
import TestSupport
import Testing

@testable import KeepsakeSync

/// What a token that isn't accepted any more goes on hearing over a stream that was opened with it: nothing.
@Suite("Event streams of removed devices and deleted players, over real HTTP", .hangLimit)
struct EndedStreamsTests {
  /// Listens until the first change, or until the stream ends.
  private struct Listener {
    let seqs: Shared<[UInt64]>
    let task: Task<Void, any Error>

    init(_ credentials: CloudCredentials) {
      let seqs = Shared<[UInt64]>([])
      self.seqs = seqs
      task = Task {
        for try await event in HTTPTransport(credentials).events() {
          seqs.value.append(event.seq)
          if event.seq > 0 { break }
        }
      }
    }
  }

  private func join(_ device: CloudCredentials, _ server: LiveServer) async throws -> CloudCredentials {
    let code = try await HTTPAccount.pairingCode(for: device).code
    return try await HTTPAccount(url: server.url, appKey: server.appKey).join(code: code, name: "Another")
  }

  @Test("a removed device's event stream ends before the next change, and the player's other devices get its event")
  func removed() async throws {
    try await LiveServer.with { server in
      let phone = try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: "Phone")
      let (tablet, stolen) = (try await join(phone, server), try await join(phone, server))
      let (kept, lost) = (Listener(tablet), Listener(stolen))
      for listener in [kept, lost] { try await until("the first event") { listener.seqs.value == [0] } }
      try await HTTPAccount.remove(stolen.device, for: phone)
      let cell = CellUpdate(
        key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.int(5))))
      _ = try await HTTPTransport(phone).exchange(ExchangeRequest(cursor: .start, cells: [cell], limit: 1))
      for listener in [kept, lost] { try await listener.task.value }
      #expect(kept.seqs.value == [0, 1])
      #expect(lost.seqs.value == [0])
    }
  }

  @Test("deleting a player ends the event streams of all of the player's devices")
  func deleted() async throws {
    try await LiveServer.with { server in
      let phone = try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: "Phone")
      let tablet = try await join(phone, server)
      let (first, heartbeat) = ("{\"seq\":0}", ": still here")
      var streams: [RawConnection] = []
      for device in [phone, tablet] {
        let stream = try RawConnection(port: server.running.port)
        await stream.send(
          "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(device.token)\r\nConnection: close\r\n\r\n")
        #expect(await stream.read(until: first).contains(first))
        streams.append(stream)
      }
      try await HTTPAccount.deletePlayer(for: phone)
      // No change can follow, but as long as a stream is open, there is a heartbeat every 15 seconds. On a slow machine
      // there may be one or two before the deletion.
      for stream in streams {
        var heartbeats = 0
        while heartbeats < 3, await stream.read(until: heartbeat).contains(heartbeat) { heartbeats += 1 }
        #expect(heartbeats < 3)
      }
    }
  }
}
#endif
