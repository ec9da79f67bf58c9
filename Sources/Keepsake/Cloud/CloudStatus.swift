public import Foundation
import KeepsakeReplication
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
  public var lastFetched: Date?
  /// Changes of other devices come at once, not only when this device asks.
  public var isListening: Bool
  /// Large saves under way, those that began first before the others: each version once for each direction. Small ones travel inside one
  /// request and are never seen here.
  ///
  /// ```swift
  /// for transfer in game.cloud.status.transfers {
  ///   drawBar(transfer.slot, transfer.fraction)
  /// }
  /// ```
  ///
  /// Empty while nothing moves, as during the pause after a failure; what goes on after it continues where it was shown before.
  public var transfers: [Transfer]

  /// Something came from other devices that the game doesn't see yet, because `Cloud.delivery` keeps it back: `Cloud.deliver()` shows it.
  public var hasArrivals: Bool
  /// Whether the cloud can be used now, and if not, why not.
  public var availability: CloudAvailability

  /// What the cloud doesn't take. Everything else goes on, and all of it stays on this device.
  ///
  /// ```swift
  /// for refusal in game.cloud.status.refusals where refusal.reason == .quota {
  ///   show("Your cloud is full", refusal.slot, refusal.quota)    // limit, used, needed: bytes
  /// }
  /// ```
  ///
  /// What finds no room (`quota`) is sent by itself when there is some: at once after the player deleted a save on this device, with the next
  /// answer of the cloud that says so, and else tried every ten minutes. It stays listed until the cloud has taken it. The others are tried
  /// again when the game starts and with `Cloud.sync()`. Of hundreds of refused checkpoints only the oldest are listed.
  public var refusals: [Refusal]

  /// Something that the cloud doesn't take.
  public struct Refusal: Sendable, Hashable {
    /// Why.
    public enum Reason: Sendable, Hashable {
      /// The player has used up what the cloud gives each of them.
      case quota
      /// It is larger than the cloud takes from anybody.
      case tooLarge
      /// The message says it.
      case other
    }
    /// How much room there is, in bytes as the cloud counts them: compressed, and all of the player's devices together.
    public struct Quota: Sendable, Hashable {
      /// What the player may keep.
      public var limit: Int64
      /// What is kept.
      public var used: Int64
      /// What this would take beside it.
      public var needed: Int64
    }
    /// The slot as the cloud knows it; nil for a value.
    public var slot: String?
    /// The name of the tracked file that it is; nil for anything else.
    public var file: String? { slot.flatMap(FileSlot.name) }
    /// Why.
    public var reason: Reason
    /// With the reason `quota`, and nil where the cloud didn't say.
    public var quota: Quota?
    /// For people: what it is and what can be done.
    public var message: String
  }

  /// The first of `transfers`; nil if there is none.
  public var transfer: Transfer? { transfers.first }

  /// A large save under way.
  public struct Transfer: Sendable, Hashable {
    /// From here to the cloud, not the other way.
    public var isUpload: Bool
    /// The slot as the cloud knows it.
    public var slot: String
    /// The name of the tracked file that it is; nil for a saved game.
    public var file: String? { FileSlot.name(of: slot) }
    /// Bytes of the save that are over, as the game wrote them, of those that have to go; compressed, fewer go over the wire. Never falls while
    /// the version is under way, also when a connection breaks and a part is sent again.
    public var bytesDone: Int64
    /// Bytes that have to go. Of a save that comes here an estimate where it has several parts.
    public var bytesInAll: Int64
    /// How much is done, from 0 to 1. Never falls.
    public var fraction: Double {
      guard bytesInAll > 0 else { return 0 }
      return min(Double(bytesDone) / Double(bytesInAll), 1)
    }
  }

  init(phase: Phase, waitingCommits: Int = 0, lastFetched: Date? = nil) {
    self.phase = phase
    self.waitingCommits = waitingCommits
    self.lastFetched = lastFetched
    isListening = false
    transfers = []
    hasArrivals = false
    availability = CloudAvailability(phase)
    refusals = []
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
    lastFetched = status.lastFetchedMilliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) }
    isListening = status.isListening
    hasArrivals = status.hasArrivals
    availability = CloudAvailability(status)
    refusals = status.refusals.map(Refusal.init)
    transfers = status.transfers.map {
      Transfer(isUpload: $0.direction == .up, slot: $0.slot, bytesDone: $0.bytesDone, bytesInAll: $0.bytesInAll)
    }
  }
}

extension CloudStatus.Refusal {
  init(_ refused: EngineRefusal) {
    slot = refused.slot
    switch refused.refusal.reason {
    case .quota: reason = .quota
    case .tooLarge: reason = .tooLarge
    default: reason = .other
    }
    quota = refused.refusal.quota.map { Quota(limit: $0.limit, used: $0.used, needed: $0.needed) }
    message = refused.refusal.message
  }
}
