#if Cloud
import Foundation
import KeepsakeReplication
import Logging
import NIOCore
import ServiceLifecycle
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

/// Event streams go on without the tasks of their requests.
@Suite("Connections of event streams", .hangLimit)
struct EventConnectionTests {
  private static let (container, own) = (ContainerID(high: 0, low: 1), DeviceID(high: 1, low: 0))
  private static let device = DeviceID(high: 2, low: 0)

  private static func texts(_ stream: EventStream) -> [String] {
    var texts: [String] = []
    while let next = stream.next() {
      guard case .event(let event) = next else { return texts + ["end"] }
      texts.append(String(buffer: event))
    }
    return texts
  }

  @Test("a stream sends what is new, heartbeats for what isn't, and of what it can't send in time only the newest")
  func waiting() throws {
    let hub = EventHub()
    let stream = EventStream { true }
    let listening = try hub.listen(Self.device, to: Self.container, stream)
    hub.publish(3, ByteBuffer(string: "three"), of: Self.container, from: Self.own)
    let wakes = Shared(0)
    stream.begin(after: 3) { wakes.value += 1 }
    #expect(wakes.value == 1 && Self.texts(stream) == [": still here\n\n"])
    hub.publish(4, ByteBuffer(string: "four"), of: Self.container, from: Self.own)
    hub.publish(5, nil, of: Self.container, from: Self.own)
    #expect(wakes.value == 2)
    #expect(Self.texts(stream) == ["data: four\n\n", "data: {\"seq\":5}\n\n"])
    for seq in 6...20 as ClosedRange<UInt64> {
      hub.publish(seq, ByteBuffer(string: "\(seq)"), of: Self.container, from: Self.own)
    }
    #expect(wakes.value == 3)
    #expect(Self.texts(stream) == (13...20).map { "data: \($0)\n\n" })
    hub.publish(21, nil, of: Self.container, from: Self.own)
    hub.end(Self.device, of: Self.container)
    #expect(wakes.value == 5 && Self.texts(stream) == ["data: {\"seq\":21}\n\n", "end"])
    withExtendedLifetime(listening) {}
  }

  @Test("a stream whose listener isn't admitted any more ends instead of what waits, and frees its place")
  func refused() throws {
    let hub = EventHub()
    let isAdmitted = Shared(true)
    let stream = EventStream { isAdmitted.value }
    do {
      let listening = try hub.listen(Self.device, to: Self.container, stream)
      stream.begin(after: 0) {}
      hub.publish(1, nil, of: Self.container, from: Self.own)
      isAdmitted.value = false
      #expect(Self.texts(stream) == ["end"])
      #expect(hub.count == 1)
      listening.end()
      #expect(hub.count == 0)
      // What follows goes nowhere.
      hub.publish(2, nil, of: Self.container, from: Self.own)
      #expect(Self.texts(stream) == ["end"])
    }
    do {
      let listening = try hub.listen(Self.device, to: Self.container, stream)
      #expect(hub.count == 1)
      withExtendedLifetime(listening) {}
    }
    #expect(hub.count == 0)
  }

  private func open(_ device: CloudCredentials, _ server: LiveServer) async throws -> (RawConnection, String) {
    try await open(device, at: server.running.port)
  }

  private func open(_ device: CloudCredentials, at port: Int) async throws -> (RawConnection, String) {
    let stream = try RawConnection(port: port)
    await stream.send("GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(device.token)\r\n\r\n")
    return (stream, await stream.read(until: "}\n\n\r\n"))
  }

  private func change(_ level: Int64, by device: CloudCredentials) async throws {
    let key = CellKey(collection: "progress", key: "level")
    let cell = CellUpdate(key: key, state: CellState(value: .max(.int(level))))
    _ = try await HTTPTransport(device).exchange(ExchangeRequest(cursor: .start, cells: [cell], limit: 1))
  }

  @Test("a stream ends as HTTP has it, its connection with it; a request that was sent after it isn't answered")
  func ended() async throws {
    try await LiveServer.with { server in
      let account = HTTPAccount(url: server.url, appKey: server.appKey)
      let phone = try await account.register(name: "Phone")
      let code = try await HTTPAccount.pairingCode(for: phone).code
      let tablet = try await account.join(code: code, name: "Tablet")
      let (stream, head) = try await open(tablet, server)
      #expect(head.hasPrefix("HTTP/1.1 200") && head.lowercased().contains("\r\nconnection: close\r\n"), "\(head)")
      await stream.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
      for level in 1...3 as ClosedRange<Int64> {
        try await change(level, by: phone)
        #expect(await stream.read(until: "\"seq\":\(level)").contains("\"seq\":\(level)"))
      }
      try await HTTPAccount.remove(tablet.device, for: phone)
      let rest = await stream.read(until: "HTTP/1.1")
      #expect(rest.hasSuffix("0\r\n\r\n") && !rest.contains("HTTP/1.1"), "\(rest)")
      // The player's other device goes on.
      let (other, first) = try await open(phone, server)
      #expect(first.contains("\"seq\":") && first.contains("200 OK"))
      withExtendedLifetime(other) {}
    }
  }

  @Test("listeners that have gone without a word leave room for others")
  func gone() async throws {
    let beatOften: (inout ServerConfiguration) -> Void = { $0.heartbeatSeconds = 1 }
    try await LiveServer.with(change: beatOften) { server in
      let phone = try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: "Phone")
      do {
        var streams: [RawConnection] = []
        for _ in 0..<ServerLimits.streamsPerContainer {
          let (stream, head) = try await open(phone, server)
          try #require(head.contains("\"seq\":0"))
          streams.append(stream)
        }
        let refused = try RawConnection(port: server.running.port)
        await refused.send("GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(phone.token)\r\n\r\n")
        #expect(await refused.read(until: "\r\n").contains("429"))
      }
      try await until("a place for a stream") {
        let stream = try RawConnection(port: server.running.port)
        await stream.send("GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(phone.token)\r\n\r\n")
        return await stream.read(until: "\r\n").contains("200")
      }
    }
  }

  @Test("a server that stops waits for the connection of each stream that has to be ended, and no longer")
  func waits() async throws {
    let hub = EventHub()
    let hasStopped = Shared(false)
    let group = ServiceGroup(configuration: .init(services: [hub], logger: Logger(label: "keepsake.test")))
    var listening: EventHub.Listening? = try hub.listen(Self.device, to: Self.container, EventStream { true })
    let running = Task {
      try await group.run()
      hasStopped.value = true
    }
    try await until("a group that runs") {
      await group.triggerGracefulShutdown()
      return hub.count == 0
    }
    // With nothing to wait for, it would be over by now.
    try await Task.sleep(for: .milliseconds(200))
    #expect(!hasStopped.value)
    withExtendedLifetime(listening) {}
    listening = nil
    try await running.value
  }

  #if os(Linux)
  @Test("a process that is told to stop ends all streams as HTTP has it before it ends")
  func stops() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await ServerProcess.start(data: folder.appendingPathComponent("data"))
      let phone = try await HTTPAccount(url: server.url, appKey: ServerProcess.appKey).register(name: "Phone")
      var streams: [RawConnection] = []
      for _ in 0..<ServerLimits.streamsPerContainer {
        let (stream, head) = try await open(phone, at: server.port)
        try #require(head.contains("\"seq\":0"))
        streams.append(stream)
      }
      await server.end(by: SIGTERM)
      for stream in streams { #expect(await stream.read(until: "never").hasSuffix("0\r\n\r\n")) }
    }
  }
  #endif
}
#endif
