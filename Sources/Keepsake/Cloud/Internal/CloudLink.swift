import KeepsakeReplication
import KeepsakeSync
import Synchronization

/// What the rest of a game's data asks of its cloud. Called from any thread; whoever calls holds no lock.
protocol CloudLink: AnyObject, Sendable {
  /// What the connection is doing. Never waits.
  var status: CloudStatus { get }
  /// Beyond how many bytes a save is downloaded only when it is asked for; nil for never.
  var largestDownload: Int? { get }
  /// There is a commit that the cloud may have to get. Never waits.
  func didCommit()
  /// Returns when the cloud has answered after this call, and what it has is here.
  func fetchChanges() async throws
  /// Downloads the contents of a slot that are in the cloud alone.
  func download(_ slot: String) async throws
  /// Shows what was kept back; false if there was nothing.
  @discardableResult func deliver() throws -> Bool
  /// The player's devices with which of these versions each has; nil in a cloud that doesn't know.
  func devices(having versions: [VersionID]) async throws -> [AccountDevice]?
}

/// A game's cloud, without keeping it alive: it keeps the game's core.
final class CloudReference: Sendable {
  private struct Link { weak var cloud: (any CloudLink)? }
  private let link = Mutex(Link())

  var cloud: any CloudLink {
    get { link.withLock { $0.cloud } ?? NoCloud.shared }
    set { link.withLock { $0.cloud = newValue } }
  }
}

/// For a game's data that is being opened, or whose cloud is gone.
private final class NoCloud: CloudLink {
  static let shared = NoCloud()

  var status: CloudStatus { CloudStatus(phase: .off) }
  var largestDownload: Int? { nil }
  func didCommit() {}
  func fetchChanges() async throws { throw GameDataError.notConnected }
  func download(_ slot: String) async throws { throw GameDataError.notConnected }
  func deliver() -> Bool { false }
  func devices(having versions: [VersionID]) async throws -> [AccountDevice]? { throw GameDataError.notConnected }
}
