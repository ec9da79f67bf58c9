public import Foundation
import KeepsakeSync

/// Whether what is here is in the cloud too, and if not, why not.
public struct CloudStatus: Sendable, Hashable {
  /// What the connection is doing.
  public enum Phase: Sendable, Hashable {
    /// Not connected: everything stays on this device.
    case off
    /// Switched off by `isEnabled`; what is saved meanwhile is sent later.
    case paused
    /// Making this device known to the cloud.
    case connecting
    /// All sent, all received.
    case upToDate
    /// Sending or receiving.
    case syncing
    /// The last try failed; it is repeated by itself. The reason is for people.
    case waiting(reason: String)
    /// The cloud refuses this device or this version of the game: trying again won't help.
    case refused(reason: String)
    /// The store can't be written, as when the disk is full; it is repeated by itself.
    case storeFailed(reason: String)
  }

  /// What the connection is doing.
  public var phase: Phase
  /// Commits that are not yet certain in the cloud, refused ones included.
  public var waitingCommits: Int
  /// When the cloud last answered, by this device's clock; nil if it never did.
  public var lastHeard: Date?
  /// Changes of other devices come at once, not only when this device asks.
  public var isListening: Bool
  /// Bytes done and bytes in all of the large save under way; nil if there is none.
  public var transfer: Transfer?

  /// A large save under way.
  public struct Transfer: Sendable, Hashable {
    /// From here to the cloud, not the other way.
    public var isUpload: Bool
    /// Bytes on the wire so far.
    public var bytesDone: Int64
    /// Nil while it isn't known.
    public var bytesInAll: Int64?
  }

  init(phase: Phase, waitingCommits: Int = 0, lastHeard: Date? = nil) {
    self.phase = phase
    self.waitingCommits = waitingCommits
    self.lastHeard = lastHeard
    isListening = false
  }

  init(_ status: SyncStatus) {
    switch status.phase {
    case .stopped: phase = .off
    case .paused: phase = .paused
    case .idle: phase = .upToDate
    case .busy: phase = .syncing
    case .waiting(let failure): phase = .waiting(reason: failure.message)
    case .halted(let failure): phase = .refused(reason: failure.message)
    case .storeFailed(let reason): phase = .storeFailed(reason: reason)
    }
    waitingCommits = status.waitingCommits
    lastHeard = status.lastHeardMilliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) }
    isListening = status.isListening
    transfer = status.transfer.map {
      Transfer(
        isUpload: $0.direction == .up, bytesDone: $0.progress.bytesDone, bytesInAll: $0.progress.bytesInAll)
    }
  }
}
