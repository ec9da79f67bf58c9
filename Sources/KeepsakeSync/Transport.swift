package import KeepsakeReplication

/// The way to a cloud: HTTP in a game, a simulated network in tests.
///
/// Everything that goes wrong is a `TransportFailure`. A call whose task is cancelled throws one, too (`interrupted`).
package protocol Transport: Sendable {
  func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse
  /// Puts a content into the cloud; putting it twice changes nothing. `progress` is told bytes sent and bytes in all.
  func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure)
  /// Fetches a content; nil if the cloud doesn't have it.
  func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent?
  /// The player's devices, this one included, with which of these versions each of them has; nil in a cloud that doesn't know. At most
  /// `ExchangeRules.maximumAskedVersions`, and at least one.
  func devices(having versions: [VersionID]) async throws(TransportFailure) -> [AccountDevice]?
  /// Listens how far the cloud has come, starting with how far it is now, until the connection ends or the reader lets go.
  /// Throws only `TransportFailure`s.
  ///
  /// - Parameter cursor: Says where the device stands, whenever it is asked. Where the cloud isn't the one that the cursor is of, the first
  ///   event says so.
  func events(since cursor: @escaping @Sendable () async -> Cursor?) -> AsyncThrowingStream<CloudEvent, any Error>
}

extension Transport {
  // What a folder does: nobody in it says what was read.
  package func devices(having versions: [VersionID]) async throws(TransportFailure) -> [AccountDevice]? { nil }

  /// The same for those who don't say where they stand.
  package func events() -> AsyncThrowingStream<CloudEvent, any Error> { events { nil } }
}

/// How much of one content has gone over the wire.
package struct TransferProgress: Hashable, Sendable {
  package var bytesDone: Int64
  /// Nil if the other side didn't say.
  package var bytesInAll: Int64?

  package init(bytesDone: Int64, bytesInAll: Int64?) {
    self.bytesDone = bytesDone
    self.bytesInAll = bytesInAll
  }
}
