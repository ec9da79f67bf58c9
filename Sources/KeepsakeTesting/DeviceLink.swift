import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeSync
import Synchronization

/// The connection of one run of a game to the cloud: over its device's line, until the run is killed.
final class DeviceLink: Transport {
  private let cloud: MemoryCloud
  private let line: DeviceLine
  /// Held while the cloud takes a request, so that the cloud accepts nothing from a killed run.
  private let isDead = Mutex(false)
  private let name = UUID().uuidString
  private let deviceName: String

  init(_ cloud: MemoryCloud, over line: DeviceLine, of deviceName: String) {
    self.cloud = cloud
    self.line = line
    self.deviceName = deviceName
  }

  var address: CloudAddress { .transport(self, container: cloud.id, name: name) }

  /// Cuts the connection of a run that is being killed: what it sends from now on doesn't reach the cloud.
  func cut() {
    isDead.withLock { $0 = true }
    line.dropListeners()
  }

  /// Restores the connection of a run that couldn't be killed.
  func mend() { isDead.withLock { $0 = false } }

  // MARK: Transport

  func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
    try await pass(Self.bytes(of: request), answered: Self.bytes) { () throws(TransportFailure) in
      try cloud.answer(request, from: (line.device, deviceName))
    }
  }

  func devices(having versions: [VersionID]) async throws(TransportFailure) -> [AccountDevice]? {
    try await pass(0, answered: Self.bytes(of:)) { () throws(TransportFailure) in
      try cloud.devices(having: versions, for: line.device)
    }
  }

  func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) {
    let bytes = content.bytes.count
    progress(TransferProgress(bytesDone: 0, bytesInAll: Int64(bytes)))
    try await pass(bytes, answered: Self.nothing) { () throws(TransportFailure) in try cloud.put(content) }
    progress(TransferProgress(bytesDone: Int64(bytes), bytesInAll: Int64(bytes)))
  }

  func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent? {
    try await pass(0, answered: Self.bytes(ofFound:)) { () throws(TransportFailure) in
      let content = try cloud.content(hash)
      if let content { progress(TransferProgress(bytesDone: 0, bytesInAll: Int64(content.bytes.count))) }
      return content
    }
  }

  func events(since cursor: @escaping @Sendable () async -> Cursor?) -> AsyncThrowingStream<CloudEvent, any Error> {
    let (stream, continuation) = AsyncThrowingStream<CloudEvent, any Error>.makeStream()
    guard !isDead.withLock({ $0 }), let id = line.add(continuation) else {
      continuation.finish(throwing: DeviceLine.cut)
      return stream
    }
    let relay = Task { [cloud] in
      do {
        for try await event in cloud.events(since: cursor) { continuation.yield(event) }
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    continuation.onTermination = { [line] _ in
      relay.cancel()
      line.remove(id)
    }
    return stream
  }

  /// Sends a request and its response, with the network's effects on both.
  private func pass<Answer: Sendable>(
    _ bytes: Int, answered: (Answer) -> Int, by call: () throws(TransportFailure) -> Answer
  ) async throws(TransportFailure) -> Answer {
    guard !isDead.withLock({ $0 }) else { throw DeviceLine.cut }
    let fate = try await line.send(bytes)
    if fate == .isLost { throw TransportFailure(.interrupted, "the network lost the request") }
    let result = isDead.withLock { isDead -> Result<Answer, TransportFailure> in
      guard !isDead else { return .failure(TransportFailure(.interrupted, "the game was killed")) }
      return Result(catching: call)
    }
    let answer = try result.get()
    if fate == .losesItsAnswer { throw TransportFailure(.interrupted, "the network lost the response") }
    try await line.receive(answered(answer))
    return answer
  }

  private static func nothing() -> Int { 0 }

  private static func bytes(ofFound content: EncodedContent?) -> Int { content?.bytes.count ?? 0 }

  /// Returns the size of a message in bytes, as HTTP would carry it.
  private static func bytes(of message: some Encodable) -> Int {
    // A message that JSON can't encode would never reach a server either. Here it counts as no bytes, and the
    // acceptance refuses it.
    (try? JSONEncoder().encode(message).count) ?? 0
  }
}
