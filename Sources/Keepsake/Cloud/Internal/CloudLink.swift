import KeepsakeReplication
import KeepsakeSync
import Synchronization

/// What the rest of a game's data needs from its cloud. Called from any thread; the caller must not hold a lock.
protocol CloudLink: AnyObject, Sendable {
  /// What the connection is doing. Never waits.
  var status: CloudStatus { get }
  /// The size in bytes above which a save is downloaded only on request; nil if there is no such limit.
  var largestDownload: Int? { get }
  /// Whether the cloud has a bank and isn't switched off. Never waits.
  var hasBank: Bool { get }
  /// Notifies the cloud that there is a commit it may need. Never waits.
  func didCommit()
  /// Notifies the cloud that there may be money at the banks of players that the store belonged to before. Never waits.
  func settleFormerWallets()
  /// Returns when the cloud has responded after this call, and its changes are on this device.
  func fetchChanges() async throws
  /// Downloads the contents of a slot that are only in the cloud.
  func download(_ slot: String) async throws
  /// Delivers what was held back. Returns false if there was nothing.
  @discardableResult func deliver() throws -> Bool
  /// Returns the player's devices, with which of these versions each one has; nil if the cloud doesn't know that.
  func devices(having versions: [VersionID]) async throws -> [AccountDevice]?
  /// Returns the player's devices; none in a cloud that doesn't know them.
  func devices() async throws -> [AccountDevice]
}

extension CloudLink {
  func settleFormerWallets() {}
}

/// A weak reference to a game's cloud, which holds the game's core strongly.
final class CloudReference: Sendable {
  private struct Link { weak var cloud: (any CloudLink)? }
  private let link = Mutex(Link())

  var cloud: any CloudLink {
    get { link.withLock { $0.cloud } ?? NoCloud.shared }
    set { link.withLock { $0.cloud = newValue } }
  }
}

/// The cloud of game data that is being opened, or whose cloud is gone.
private final class NoCloud: CloudLink {
  static let shared = NoCloud()

  var status: CloudStatus { CloudStatus(phase: .off) }
  var largestDownload: Int? { nil }
  var hasBank: Bool { false }
  func didCommit() {}
  func fetchChanges() async throws { throw GameDataError.notConnected }
  func download(_ slot: String) async throws { throw GameDataError.notConnected }
  func deliver() -> Bool { false }
  func devices(having versions: [VersionID]) async throws -> [AccountDevice]? { throw GameDataError.notConnected }
  func devices() async throws -> [AccountDevice] { throw GameDataError.notConnected }
}
