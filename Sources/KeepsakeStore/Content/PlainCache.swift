import Foundation
import KeepsakeReplication
import Synchronization

/// Caches the plain bytes of the contents used last: the next save is encoded against the previous one, which would
/// otherwise have to be decoded from its chain each time.
final class PlainCache: Sendable {
  /// Little compared with a game's own memory, and enough for the slots that a game writes in turn.
  static let maximumBytes = 32 << 20
  /// About what a content takes besides its bytes, so that many small ones take no more memory than a few large ones.
  private static let overheadBytes = 256

  private let contents = Mutex(RecentValues<ContentHash, Data>(maximumCost: maximumBytes))

  func bytes(of hash: ContentHash) -> Data? { contents.withLock { $0.value(of: hash) } }

  /// Caches bytes that are known to have this hash.
  func insert(_ bytes: Data, as hash: ContentHash) {
    guard bytes.count <= Self.maximumBytes else { return }
    contents.withLock { $0.insert(bytes, for: hash, cost: bytes.count + Self.overheadBytes) }
  }

  func removeAll() { contents.withLock { $0.removeAll() } }
}
