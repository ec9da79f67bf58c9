package import KeepsakeReplication

/// A connection to a cloud: HTTP in a game, a simulated network in tests.
///
/// Every failure is a `TransportFailure`. A call whose task is cancelled throws one, too (`interrupted`).
package protocol Transport: Sendable {
  func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse
  /// Uploads a content to the cloud; uploading it twice changes nothing. `progress` receives the bytes sent and the
  /// bytes in total.
  func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure)
  /// Downloads a content; nil if the cloud doesn't have it.
  func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent?
  /// Returns the player's devices, including this one, with which of these versions each of them has; nil in a cloud
  /// that doesn't know. Takes at least one and at most `ExchangeRules.maximumAskedVersions` versions.
  func devices(having versions: [VersionID]) async throws(TransportFailure) -> [AccountDevice]?
  /// Whether the cloud has a bank.
  var hasBank: Bool { get }
  /// Offers the bank the wallet of a store that has joined another player: nothing else of the store belongs to this
  /// cloud any more.
  func leave(with offer: WalletOffer) async throws(TransportFailure) -> LeavingAnswer
  /// Listens for how far the cloud has come, starting with its current position, until the connection ends or the
  /// reader stops. Throws only `TransportFailure`s.
  ///
  /// - Parameter cursor: Returns the device's cursor whenever it is called. If the cursor isn't one of this cloud, the
  ///   first event says so.
  func events(since cursor: @escaping @Sendable () async -> Cursor?) -> AsyncThrowingStream<CloudEvent, any Error>
}

extension Transport {
  // The behaviour of a folder: nobody in it reports what was read.
  package func devices(having versions: [VersionID]) async throws(TransportFailure) -> [AccountDevice]? { nil }

  package var hasBank: Bool { true }

  // The behaviour of a cloud that nobody leaves: one that has no bank, or of a test.
  package func leave(with offer: WalletOffer) async throws(TransportFailure) -> LeavingAnswer {
    throw TransportFailure(.rejected, "this cloud settles no wallet of a player that the device has left")
  }

  /// Does the same for callers that have no cursor.
  package func events() -> AsyncThrowingStream<CloudEvent, any Error> { events { nil } }
}

/// The answer of a bank that is left.
package enum LeavingAnswer: Sendable {
  case reply(WalletReply)
  /// The cloud refuses the device for good: it was removed, or everything of its player was deleted.
  case retired
}

/// How much of one content has been transferred.
package struct TransferProgress: Hashable, Sendable {
  package var bytesDone: Int64
  /// Nil if the other side didn't say.
  package var bytesInAll: Int64?

  package init(bytesDone: Int64, bytesInAll: Int64?) {
    self.bytesDone = bytesDone
    self.bytesInAll = bytesInAll
  }
}
