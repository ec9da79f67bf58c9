/// What can happen to a device's engine.
package enum EngineEvent: Hashable, Sendable {
  /// The store is open and the transport is ready; also after a reconnect.
  case started
  /// Something was added to the outbox or the wallet.
  case committed
  /// The cloud's event stream says that it has come this far.
  case announced(CloudEvent)
  /// A wake-up that the engine asked for.
  case woke
  /// The game wants everything sent now: waiting for a retry ends.
  case sync
  /// The answer to the exchange of this number.
  case answered(request: UInt64, ExchangeResponse)
  /// A content was put into the cloud.
  case uploaded(request: UInt64, ContentHash)
  /// A content came; nil if the cloud doesn't have it any more.
  case downloaded(request: UInt64, ContentHash, EncodedContent?)
  /// The request of this number failed.
  case failed(request: UInt64, TransportFailure)
}

/// What an engine wants done after its transaction has committed. Requests carry a number; one exchange and some
/// contents are in flight at the same time, and an event about another number changes nothing.
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
  /// Versions came from other devices: these slots, sorted.
  case slots([String])
  /// Values came from other devices: these cells, sorted.
  case cells([CellKey])
  /// Balances or rights changed.
  case wallet
  /// The bank decided about operations.
  case decisions([WalletDecision])
  /// These versions are certain in the cloud, sorted.
  case acknowledged([VersionID])
  /// The cloud refused something for good.
  case refused([Refusal])
  /// A content came damaged, or is gone from the cloud though a head needs it.
  case damaged(ContentHash)
  /// The first catch-up is done.
  case caughtUp
}

/// Why a request failed, as far as the engine needs to know.
package struct TransportFailure: Error, Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// No connection came about: the cloud can't have seen the request.
    case unreachable
    /// The connection broke or timed out: the cloud may have seen it.
    case interrupted
    /// The cloud is busy or in trouble; try again, after this many milliseconds if it says so.
    case server(retryAfterMilliseconds: Int64?)
    /// The token isn't taken.
    case unauthorized
    /// The cloud doesn't take this request, and won't.
    case rejected
  }
  package var kind: Kind
  /// For people.
  package var message: String
  /// Set where the request was rejected because the player has no room left for it: to send it in another form doesn't
  /// help.
  package var quota: QuotaShortage?

  package init(_ kind: Kind, _ message: String, quota: QuotaShortage? = nil) {
    self.kind = kind
    self.message = message
    self.quota = quota
  }
}

/// What the engine is doing, and what it still owes.
package struct EngineStatus: Hashable, Sendable {
  package enum Phase: Hashable, Sendable {
    /// Never started, or stopped.
    case stopped
    /// All sent, all received.
    case idle
    /// A request is under way.
    case busy
    /// The last try failed; the next comes after a pause.
    case waiting(TransportFailure)
    /// The cloud doesn't take this device's token, or refuses the protocol.
    case halted(TransportFailure)
  }
  package var phase: Phase
  /// Failures in a row.
  package var attempts: Int
  /// The same for what comes from the cloud alone: `idle` says that all of it is here, whatever this device has still
  /// to send.
  package var fetching: Phase
  /// Contents on their way, in the order in which they began.
  package var transfers: [EngineTransfer]
  /// What of the outbox the cloud doesn't take, as it was last looked at.
  package var refusals: [EngineRefusal]

  package init(phase: Phase, attempts: Int, fetching: Phase, transfers: [EngineTransfer] = [], refusals: [EngineRefusal] = []) {
    self.phase = phase
    self.attempts = attempts
    self.fetching = fetching
    self.transfers = transfers
    self.refusals = refusals
  }
}

/// Something that the cloud doesn't take.
package struct EngineRefusal: Hashable, Sendable {
  /// Nil for a value.
  package var slot: String?
  package var refusal: Refusal

  package init(slot: String?, refusal: Refusal) {
    self.slot = slot
    self.refusal = refusal
  }
}

/// A content on its way, and the version that it belongs to.
package struct EngineTransfer: Hashable, Sendable {
  package var request: UInt64
  package var isUpload: Bool
  package var content: ContentHash
  package var slot: String
  package var version: VersionID
  /// Plain bytes of the content; 0 for one that is no part of the version, but that a part is a delta of. A guess for
  /// what isn't here yet.
  package var length: Int
  /// Plain bytes of all contents of the version that have to go the same way, this one included, as far as known now.
  package var lengthInAll: Int

  package init(
    request: UInt64, isUpload: Bool, content: ContentHash, slot: String, version: VersionID, length: Int, lengthInAll: Int
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
