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
  /// The content under way, if a large one is.
  package var transfer: SyncTransfer?
  /// The cloud's event stream is open: changes of other devices come at once.
  package var isListening: Bool
  /// When the cloud last answered, by the device's clock; nil if it never did.
  package var lastHeardMilliseconds: Int64?

  package init(
    phase: Phase = .stopped, attempts: Int = 0, waitingCommits: Int = 0, transfer: SyncTransfer? = nil,
    isListening: Bool = false, lastHeardMilliseconds: Int64? = nil
  ) {
    self.phase = phase
    self.attempts = attempts
    self.waitingCommits = waitingCommits
    self.transfer = transfer
    self.isListening = isListening
    self.lastHeardMilliseconds = lastHeardMilliseconds
  }
}

/// One content on its way.
package struct SyncTransfer: Hashable, Sendable {
  package enum Direction: Hashable, Sendable {
    case up, down
  }
  package var direction: Direction
  package var content: ContentHash
  package var progress: TransferProgress

  package init(direction: Direction, content: ContentHash, progress: TransferProgress) {
    self.direction = direction
    self.content = content
    self.progress = progress
  }
}
