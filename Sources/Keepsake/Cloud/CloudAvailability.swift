import KeepsakeSync

/// Whether the cloud can be used now, and if not, why not: for a program to branch on. `CloudStatus.phase` has the words.
///
///     switch game.cloud.availability {
///     case .available: offerOnlinePlay()
///     case .unavailable(.switchedOff): offerTheSwitch()
///     case .unavailable(.refused): askToSignInAgain()
///     case .unavailable: playOffline()             // all of it works, and is sent later
///     }
///
/// It says what the last try found. A network that has just gone shows when something is sent, within about a minute at the latest.
public enum CloudAvailability: Sendable, Hashable {
  /// The cloud answered the last time that it was asked.
  case available
  /// It can't be used now; everything goes on without it.
  case unavailable(Reason)

  /// Why not.
  public enum Reason: Sendable, Hashable {
    /// The game has connected no cloud, or has disconnected it.
    case notConnected
    /// The player's own switch is off: `Cloud.isEnabled`.
    case switchedOff
    /// It was connected just now and hasn't answered yet.
    case notReachedYet
    /// No network, no server at the address, or no folder there; tried again by itself.
    case unreachable
    /// The cloud is there and can't serve now, as when its disk is full; tried again by itself.
    case inTrouble
    /// The cloud doesn't take this device, this game or its version, or the data belongs to another cloud. Only people can help.
    case refused
    /// This device's disk takes nothing; tried again by itself.
    case storeFailed
  }

  /// Whether the cloud answered the last time that it was asked.
  public var isAvailable: Bool { self == .available }

  init(_ status: SyncStatus) {
    switch status.phase {
    case .stopped: self = .unavailable(.notConnected)
    case .paused: self = .unavailable(.switchedOff)
    case .idle, .busy: self = status.isReached ? .available : .unavailable(.notReachedYet)
    case .waiting(let failure), .halted(let failure):
      switch failure.kind {
      case .unreachable, .interrupted: self = .unavailable(.unreachable)
      case .server: self = .unavailable(.inTrouble)
      case .unauthorized, .rejected: self = .unavailable(.refused)
      }
    case .storeFailed: self = .unavailable(.storeFailed)
    }
  }

  /// The same while nothing is known of a cloud but what the connection to it does.
  init(_ phase: CloudStatus.Phase, reaching code: GameDataError.Code? = nil) {
    switch phase {
    case .off: self = .unavailable(.notConnected)
    case .paused: self = .unavailable(.switchedOff)
    case .connecting: self = .unavailable(.notReachedYet)
    case .waiting: self = .unavailable(code == .unreachable ? .unreachable : .inTrouble)
    case .refused: self = .unavailable(.refused)
    case .storeFailed: self = .unavailable(.storeFailed)
    case .upToDate, .syncing: self = .available
    }
  }

  /// While a failed request is tried again, the reason stays.
  func after(_ before: Self) -> Self {
    self == .unavailable(.notReachedYet) && [.unavailable(.unreachable), .unavailable(.inTrouble)].contains(before) ? before : self
  }
}
