package import KeepsakeReplication

/// What synchronization is doing, and what it still owes.
package struct SyncStatus: Hashable, Sendable {
  package enum Phase: Hashable, Sendable {
    /// Not started, or stopped.
    case stopped
    case paused
    /// All sent, all received.
    case idle
    /// Something is under way.
    case busy
    /// The last try failed; the next comes after a pause.
    case waiting(TransportFailure)
    /// The cloud doesn't take this device's token, or refuses the protocol: nothing goes on until something is changed.
    case halted(TransportFailure)
    /// The store failed (a full disk); tried again after a pause.
    case storeFailed(String)
  }
  package var phase: Phase
  /// Failures in a row.
  package var attempts: Int
  /// Commits that are not yet certain in the cloud, those that it refused included.
  package var waitingCommits: Int
  /// Versions whose contents are under way, those that began first before the others. What travels inside an exchange isn't counted.
  package var transfers: [SyncTransfer]
  /// The cloud's event stream is open: changes of other devices come at once.
  package var isListening: Bool
  /// When the cloud last answered, by the device's clock; nil if it never did.
  package var lastFetchedMilliseconds: Int64?
  /// What the cloud doesn't take, and why. Also while it is tried once more.
  package var refusals: [EngineRefusal]
  /// Something came that is kept back until it is delivered.
  package var hasArrivals: Bool
  /// The cloud has answered since the last failure.
  package var isReached: Bool

  package init(
    phase: Phase = .stopped, attempts: Int = 0, waitingCommits: Int = 0, transfers: [SyncTransfer] = [],
    isListening: Bool = false, lastFetchedMilliseconds: Int64? = nil, refusals: [EngineRefusal] = [], hasArrivals: Bool = false,
    isReached: Bool = false
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
  }
}

/// One version whose contents are on their way.
package struct SyncTransfer: Hashable, Sendable {
  package enum Direction: Hashable, Sendable {
    case up, down
  }
  package var direction: Direction
  package var slot: String
  package var version: VersionID
  /// Bytes of the version as the game knows them, of those that have to go; on the wire they are fewer. Never falls, also where something
  /// that broke off begins again.
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
