/// An event that a device's engine handles.
package enum EngineEvent: Hashable, Sendable {
  /// The store is open and the transport is ready; also sent after a reconnect.
  case started
  /// Something was added to the outbox or the wallet.
  case committed
  /// The cloud's event stream reports how far the cloud has come.
  case announced(CloudEvent)
  /// A wake-up that the engine requested.
  case woke
  /// The game wants everything sent immediately: waiting for a retry ends.
  case sync
  /// The response to the exchange of this number.
  case answered(request: UInt64, ExchangeResponse)
  /// A content was uploaded to the cloud.
  case uploaded(request: UInt64, ContentHash)
  /// A download ended; nil if the cloud doesn't have the content any more.
  case downloaded(request: UInt64, ContentHash, EncodedContent?)
  /// The request of this number failed.
  case failed(request: UInt64, TransportFailure)
}

/// What an engine wants done after its transaction has committed. Requests carry a number; one exchange and some
/// contents can be in flight at the same time, and an event about any other number changes nothing.
package enum EngineEffect: Hashable, Sendable {
  case exchange(request: UInt64, ExchangeRequest)
  case upload(request: UInt64, EncodedContent)
  case download(request: UInt64, ContentHash)
  /// Send `woke` after this time; a later `wake` replaces an earlier one.
  case wake(afterMilliseconds: Int64)
  /// Something that the game may want to know.
  case notify(EngineNotification)
}

/// What changed for the game.
package enum EngineNotification: Hashable, Sendable {
  /// Versions of other devices arrived in these slots, sorted.
  case slots([String])
  /// Values of other devices arrived in these cells, sorted.
  case cells([CellKey])
  /// Balances or rights changed.
  case wallet
  /// The bank decided about operations.
  case decisions([Wallet.Decided])
  /// These versions are certain in the cloud, sorted.
  case acknowledged([VersionID])
  /// The cloud refused something permanently.
  case refused([Refusal])
  /// A content was received damaged, or is gone from the cloud although a head needs it.
  case damaged(ContentHash)
  /// The first catch-up is done.
  case caughtUp
  /// Money of another bank will never arrive.
  case moneyLost(LostMoney)
  /// Money of another bank can't be asked for: the credentials for that bank aren't here.
  case moneyOutOfReach(LostMoney)
}

/// Why a request failed, as far as the engine needs to know.
package struct TransportFailure: Error, Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// No connection was made: the cloud can't have seen the request.
    case unreachable
    /// The connection broke or timed out: the cloud may have seen the request.
    case interrupted
    /// The cloud is busy or has a problem; try again, after this many milliseconds if it says so.
    case server(retryAfterMilliseconds: Int64?)
    /// The token isn't accepted.
    case unauthorized
    /// This game isn't entitled to the shared container, or not any more: a studio may entitle it at any time.
    case notEntitled
    /// The cloud doesn't accept this request, and never will.
    case rejected
  }
  package var kind: Kind
  /// A message for people.
  package var message: String
  /// Set if the request was rejected because the player has no room left for it: sending it in another form doesn't
  /// help.
  package var quota: QuotaShortage?
  /// Whether the request was sent, as far as is known, and no response came for as long as a device waits.
  package var isTimeout: Bool

  package init(_ kind: Kind, _ message: String, quota: QuotaShortage? = nil, isTimeout: Bool = false) {
    self.kind = kind
    self.message = message
    self.quota = quota
    self.isTimeout = isTimeout
  }
}

/// What the engine is doing, and what it has still to do.
package struct EngineStatus: Hashable, Sendable {
  package enum Phase: Hashable, Sendable {
    /// Never started, or stopped.
    case stopped
    /// Everything is sent and received.
    case idle
    /// A request is in flight.
    case busy
    /// The last attempt failed; the next one follows after a pause.
    case waiting(TransportFailure)
    /// The cloud doesn't accept this device's token, or refuses the protocol.
    case halted(TransportFailure)
  }
  package var phase: Phase
  /// The number of consecutive failures.
  package var attempts: Int
  /// The phase of fetching alone: `idle` means that everything from the cloud is here, whatever this device has still
  /// to send.
  package var fetching: Phase
  /// Contents in flight, in the order in which they began.
  package var transfers: [EngineTransfer]
  /// What the cloud refuses of the outbox, as of the last look at it.
  package var refusals: [EngineRefusal]

  package init(
    phase: Phase, attempts: Int, fetching: Phase, transfers: [EngineTransfer] = [], refusals: [EngineRefusal] = []
  ) {
    self.phase = phase
    self.attempts = attempts
    self.fetching = fetching
    self.transfers = transfers
    self.refusals = refusals
  }
}

/// Something that the cloud refuses.
package struct EngineRefusal: Hashable, Sendable {
  /// The slot of the refused version; nil for a value.
  package var slot: String?
  package var refusal: Refusal

  package init(slot: String?, refusal: Refusal) {
    self.slot = slot
    self.refusal = refusal
  }
}

/// A content in flight, and the version that it belongs to.
package struct EngineTransfer: Hashable, Sendable {
  package var request: UInt64
  package var isUpload: Bool
  package var content: ContentHash
  package var slot: String
  package var version: VersionID
  /// Plain bytes of the content; 0 for one that is no part of the version, but the base of a part. An estimate for
  /// contents that aren't here yet.
  package var length: Int
  /// Plain bytes of all contents of the version that have to go the same way, including this one, as far as known.
  package var lengthInAll: Int

  package init(
    request: UInt64, isUpload: Bool, content: ContentHash, slot: String, version: VersionID, length: Int,
    lengthInAll: Int
  ) {
    self.request = request
    self.isUpload = isUpload
    self.content = content
    self.slot = slot
    self.version = version
    self.length = length
    self.lengthInAll = lengthInAll
  }
}
