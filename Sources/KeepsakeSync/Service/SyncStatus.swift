package import KeepsakeReplication

/// What synchronization is doing, and what it has still to do.
package struct SyncStatus: Hashable, Sendable {
  package enum Phase: Hashable, Sendable {
    /// Not started, or stopped.
    case stopped
    case paused
    /// Everything is sent and received.
    case idle
    /// Something is in flight.
    case busy
    /// The last attempt failed; the next one follows after a pause.
    case waiting(TransportFailure)
    /// The cloud doesn't accept this device's token, or refuses the protocol: nothing continues until something is
    /// changed.
    case halted(TransportFailure)
    /// The store failed (a full disk); tried again after a pause.
    case storeFailed(String)
  }
  package var phase: Phase
  /// The number of consecutive failures.
  package var attempts: Int
  /// Commits that aren't certain in the cloud yet, including those that it refused.
  package var waitingCommits: Int
  /// Versions whose contents are in flight, in the order in which they began. Contents inside an exchange aren't
  /// included.
  package var transfers: [SyncTransfer]
  /// Whether the cloud's event stream is open, so that changes of other devices arrive immediately.
  package var isListening: Bool
  /// When the cloud last responded, by the device's clock; nil if it never did.
  package var lastFetchedMilliseconds: Int64?
  /// What the cloud refuses, and why. Also while it is tried once more.
  package var refusals: [EngineRefusal]
  /// Whether something was received that is kept back until it is delivered.
  package var hasArrivals: Bool
  /// Whether the cloud has responded since the last failure.
  package var isReached: Bool
  /// Set while the cloud has this device marked as set back, and wants its game to know.
  package var setBackMark: SetBackMark?
  /// Whether this device may only read in the cloud, as of its last response.
  package var isReadOnly: Bool

  package init(
    phase: Phase = .stopped, attempts: Int = 0, waitingCommits: Int = 0, transfers: [SyncTransfer] = [],
    isListening: Bool = false, lastFetchedMilliseconds: Int64? = nil, refusals: [EngineRefusal] = [],
    hasArrivals: Bool = false,
    isReached: Bool = false, setBackMark: SetBackMark? = nil, isReadOnly: Bool = false
  ) {
    self.phase = phase
    self.attempts = attempts
    self.waitingCommits = waitingCommits
    self.transfers = transfers
    self.isListening = isListening
    self.lastFetchedMilliseconds = lastFetchedMilliseconds
    self.refusals = refusals
    self.hasArrivals = hasArrivals
    self.isReached = isReached
    self.setBackMark = setBackMark
    self.isReadOnly = isReadOnly
  }
}

/// One version whose contents are in flight.
package struct SyncTransfer: Hashable, Sendable {
  package enum Direction: Hashable, Sendable {
    case up, down
  }
  package var direction: Direction
  package var slot: String
  package var version: VersionID
  /// Plain bytes transferred so far, of those of the version's contents that have to be; on the wire they are fewer.
  /// Never decreases, even if a transfer that was interrupted starts again.
  package var bytesDone: Int64
  package var bytesInAll: Int64

  package init(direction: Direction, slot: String, version: VersionID, bytesDone: Int64, bytesInAll: Int64) {
    self.direction = direction
    self.slot = slot
    self.version = version
    self.bytesDone = bytesDone
    self.bytesInAll = bytesInAll
  }
}
