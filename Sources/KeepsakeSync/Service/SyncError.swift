package import KeepsakeReplication

/// Why synchronization can't do what was requested.
package enum SyncError: Error, Sendable, CustomStringConvertible {
  /// Nothing is synchronized at present: not started, paused or stopped.
  case notRunning
  /// The store belongs to another container: joining this one would mix the data of two players.
  case otherContainer(held: ContainerID, offered: ContainerID)
  /// The cloud refused these permanently; everything else is there.
  case refused([Refusal])
  /// The cloud can't be reached, or doesn't accept what was sent.
  case transport(TransportFailure)
  /// The cloud doesn't have the contents of a save that were left there.
  case gone(slot: String)
  /// The store failed; the request continues when it works again.
  case store(any Error)

  package var description: String {
    switch self {
    case .notRunning: "Synchronization isn't running."
    case .otherContainer: "This store belongs to another player's container."
    case .refused(let refusals): "The cloud refused: " + refusals.map(\.message).joined(separator: " ")
    case .transport(let failure): failure.message
    case .gone: "The cloud no longer has all of this save, or its copy is damaged."
    case .store(let error): "The store failed: \(ErrorReason.text(error))"
    }
  }
}
