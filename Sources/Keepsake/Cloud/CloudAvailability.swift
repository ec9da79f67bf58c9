import KeepsakeSync

/// Whether the cloud can be used now, and if not, why: for a program to branch on. `CloudStatus.phase` has the text for
/// people.
///
/// ```swift
/// switch game.cloud.availability {
/// case .available: offerOnlinePlay()
/// case .unavailable(.switchedOff): offerTheSwitch()
/// case .unavailable(.refused): askToSignInAgain()
/// case .unavailable: playOffline()    // everything works, and is sent later
/// }
/// ```
///
/// It reflects the last attempt. A lost network is noticed at the next request, within about a minute.
public enum CloudAvailability: Sendable, Hashable {
  /// The cloud responded to the last request.
  case available
  /// The cloud can't be used now. Everything works without it.
  case unavailable(Reason)

  /// Why the cloud can't be used.
  public enum Reason: Sendable, Hashable {
    /// The game hasn't connected a cloud, or has disconnected it.
    case notConnected
    /// `Cloud.isEnabled` is false.
    case switchedOff
    /// The connection has just started, and the cloud hasn't responded yet.
    case notReachedYet
    /// There is no network, no server at the address, or no such folder. Retried automatically.
    case unreachable
    /// The cloud is there but can't serve now, for example because its disk is full. Retried automatically.
    case inTrouble
    /// The cloud refuses this device, this game or its version, the data belongs to another cloud, or this device's
    /// credentials are gone. Retrying doesn't help.
    case refused
    /// The game isn't entitled to this shared container, or not any more (see `GameData.shared(_:)`). Everything works
    /// without it, and is tried again every few minutes.
    case notEntitled
    /// This device's disk can't be written, or its credential store fails. Retried automatically.
    case storeFailed
  }

  /// Whether the cloud responded to the last request.
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
      case .notEntitled: self = .unavailable(.notEntitled)
      case .unauthorized, .rejected: self = .unavailable(.refused)
      }
    case .storeFailed: self = .unavailable(.storeFailed)
    }
  }

  /// Makes the availability from the phase of a connection that has no service yet.
  init(_ phase: CloudStatus.Phase, reaching code: GameDataError.Code? = nil) {
    switch phase {
    case .off: self = .unavailable(.notConnected)
    case .paused: self = .unavailable(.switchedOff)
    case .connecting: self = .unavailable(.notReachedYet)
    case .waiting:
      switch code {
      case .unreachable: self = .unavailable(.unreachable)
      case .notEntitled: self = .unavailable(.notEntitled)
      default: self = .unavailable(.inTrouble)
      }
    case .refused: self = .unavailable(.refused)
    case .storeFailed: self = .unavailable(.storeFailed)
    case .upToDate, .syncing: self = .available
    }
  }

  /// Keeps the previous reason while a failed request is being retried.
  func after(_ before: Self) -> Self {
    let isRetried = [.unreachable, .inTrouble, .notEntitled].contains { before == .unavailable($0) }
    return self == .unavailable(.notReachedYet) && isRetried ? before : self
  }
}
