public import Foundation
import KeepsakeReplication
import KeepsakeSync

/// Whether everything on this device is in the cloud, and if not, why.
public struct CloudStatus: Sendable, Hashable {
  /// The state of the connection.
  public enum Phase: Sendable, Hashable {
    /// Not connected: everything stays on this device.
    case off
    /// `Cloud.isEnabled` is false. Changes are queued.
    case paused
    /// Registering this device with the cloud.
    case connecting
    /// Everything is sent and received.
    case upToDate
    /// Sending or receiving.
    case syncing
    /// The last attempt failed and will be retried. The reason is for people.
    case waiting(reason: String)
    /// The cloud refuses this device or this version of the game. Retrying doesn't help.
    case refused(reason: String)
    /// The store can't be written, for example because the disk is full, or the credential store fails. Retried
    /// automatically.
    case storeFailed(reason: String)
  }

  /// The state of the connection.
  public var phase: Phase
  /// Commits that aren't known to be in the cloud yet, including refused ones.
  public var waitingCommits: Int
  /// When the cloud last responded, by this device's clock; nil if it never did.
  public var lastFetched: Date?
  /// Whether the cloud announces changes of other devices immediately. If not, they arrive with this device's next
  /// request.
  public var isListening: Bool
  /// Large saves that are being transferred, oldest first: each version at most once in each direction. Small saves are
  /// part of other requests and are never listed.
  ///
  /// ```swift
  /// for transfer in game.cloud.status.transfers {
  ///   drawBar(transfer.slot, transfer.fraction)
  /// }
  /// ```
  ///
  /// Empty while nothing is being transferred, such as during the pause after a failure. A resumed transfer continues
  /// at its last fraction.
  public var transfers: [Transfer]

  /// Whether `Cloud.delivery` holds something back, which `Cloud.deliver()` delivers.
  public var hasArrivals: Bool
  /// Whether the cloud can be used now, and if not, why.
  public var availability: CloudAvailability

  /// What the cloud refuses. It stays on this device, and everything else continues to sync.
  ///
  /// ```swift
  /// for refusal in game.cloud.status.refusals where refusal.reason == .quota {
  ///   show("Your cloud is full", refusal.slot, refusal.quota)    // limit, used, needed: bytes
  /// }
  /// ```
  ///
  /// A save that exceeds the quota is sent automatically when there is room: immediately after a deletion on this
  /// device, when the cloud reports room, and otherwise every ten minutes. It stays listed until the cloud has it.
  /// While everything is refused because of `setBack` or `isReadOnly`, one entry stands for all of it, which is sent
  /// once the cloud takes it again. Other refused items are retried when the game starts and by `Cloud.sync()`. If
  /// hundreds of checkpoints are refused, only the oldest are listed.
  public var refusals: [Refusal]

  /// Something that the cloud refuses.
  public struct Refusal: Sendable, Hashable {
    /// Why it is refused.
    public enum Reason: Sendable, Hashable {
      /// The player's quota is used up.
      case quota
      /// It is larger than the cloud accepts from anyone.
      case tooLarge
      /// Another reason, in `message`.
      case other
    }
    /// The player's quota in bytes, as the cloud counts them: compressed, for all of the player's devices together.
    public struct Quota: Sendable, Hashable {
      /// How much the player may store.
      public var limit: Int64
      /// How much is stored.
      public var used: Int64
      /// How much this item would add.
      public var needed: Int64
    }
    /// The slot's name as the cloud knows it; nil for a value.
    public var slot: String?
    /// The name of the tracked file; nil for anything else.
    public var file: String? { slot.flatMap { SlotKey(text: $0).fileName } }
    /// Why it is refused.
    public var reason: Reason
    /// The quota, if the reason is `quota` and the cloud reported it.
    public var quota: Quota?
    /// A sentence for people that explains what they can do.
    public var message: String
  }

  /// Set while the cloud knows that the data on this device went back to an older state, as when the player put an old
  /// copy of it back. Nil if that never happened, if the game's studio has cleared the device, and always if the
  /// server's operator doesn't want games to know, or the cloud is a folder.
  ///
  /// ```swift
  /// if let setBack = game.cloud.status.setBack {
  ///   show(setBack.isRefused ? "Contact our support to sync again." : "An old copy of your data was put back.")
  /// }
  /// ```
  ///
  /// What other devices have saved is kept, and comes back to this one. Kept across restarts.
  public var setBack: SetBack?

  /// Data that went back to an older state.
  public struct SetBack: Sendable, Hashable {
    /// When the cloud noticed it last, by the server's clock.
    public var noticed: Date
    /// Whether the cloud takes no saves and values of this device until the game's studio clears it. They stay on this
    /// device, listed in `refusals`, and are sent then. Everything is still received, and money is as ever.
    public var isRefused: Bool
  }

  /// Whether the game may only read this shared container, as the cloud said last (see `GameData.shared(_:)`). What is
  /// saved in it meanwhile stays on this device, listed in `refusals`, and is sent once the game may write. Kept across
  /// restarts.
  public var isReadOnly = false

  /// The first of `transfers`; nil if there is none.
  public var transfer: Transfer? { transfers.first }

  /// A large save that is being transferred.
  public struct Transfer: Sendable, Hashable {
    /// Whether it is being sent to the cloud; otherwise it is being received.
    public var isUpload: Bool
    /// The slot's name as the cloud knows it.
    public var slot: String
    /// The name of the tracked file; nil for a saved game.
    public var file: String? { SlotKey(text: slot).fileName }
    /// Bytes of the save, uncompressed, that have been transferred. Never decreases while the version is being
    /// transferred, even if a part is sent again.
    public var bytesDone: Int64
    /// Bytes of the save, uncompressed, that have to be transferred in total. An estimate for a download in several
    /// parts.
    public var bytesInAll: Int64
    /// The fraction that has been transferred, from 0 to 1. Never decreases.
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
    setBack = status.setBackMark.map(SetBack.init)
    isReadOnly = status.isReadOnly
    transfers = status.transfers.map {
      Transfer(isUpload: $0.direction == .up, slot: $0.slot, bytesDone: $0.bytesDone, bytesInAll: $0.bytesInAll)
    }
  }
}

extension CloudStatus.SetBack {
  init(_ mark: SetBackMark) {
    noticed = Date(timeIntervalSince1970: Double(mark.atMilliseconds) / 1000)
    isRefused = mark.isRefused
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
