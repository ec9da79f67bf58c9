import KeepsakeReplication
import KeepsakeSync

@testable import Keepsake

/// A game's cloud with some of its methods replaced. The test has to retain it for as long as it is used.
final class StubCloud: CloudLink {
  private let original: any CloudLink
  private let onCommit: (@Sendable () -> Void)?
  private let fetching: (@Sendable () async throws -> Void)?

  /// Replaces the game's cloud from now on.
  init(
    of game: GameData, onCommit: (@Sendable () -> Void)? = nil, fetching: (@Sendable () async throws -> Void)? = nil
  ) {
    original = game.core.cloud
    self.onCommit = onCommit
    self.fetching = fetching
    game.core.cloud = self
  }

  var status: CloudStatus { original.status }
  var largestDownload: Int? { original.largestDownload }
  var hasBank: Bool { original.hasBank }
  func didCommit() { onCommit.map { $0() } ?? original.didCommit() }
  func fetchChanges() async throws {
    if let fetching { try await fetching() } else { try await original.fetchChanges() }
  }
  func download(_ slot: String) async throws { try await original.download(slot) }
  func deliver() throws -> Bool { try original.deliver() }
  func devices(having versions: [VersionID]) async throws -> [AccountDevice]? {
    try await original.devices(having: versions)
  }
  func devices() async throws -> [AccountDevice] { try await original.devices() }
}
