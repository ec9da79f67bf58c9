import Foundation
import KeepsakeReplication
import Synchronization

/// Caches the plain bytes of the contents used last: the next save is encoded against the previous one, which would
/// otherwise have to be decoded from its chain each time.
final class PlainCache: Sendable {
  /// Little compared with a game's own memory, and enough for the slots that a game writes in turn.
  static let maximumBytes = 32 << 20

  private struct Entry {
    let hash: ContentHash
    let bytes: Data
  }
  /// Newest last.
  private let entries = Mutex<[Entry]>([])

  func bytes(of hash: ContentHash) -> Data? {
    entries.withLock { entries in
      guard let index = entries.lastIndex(where: { $0.hash == hash }) else { return nil }
      let entry = entries.remove(at: index)
      entries.append(entry)
      return entry.bytes
    }
  }

  /// Caches bytes that are known to have this hash.
  func insert(_ bytes: Data, as hash: ContentHash) {
    guard bytes.count <= Self.maximumBytes else { return }
    entries.withLock { entries in
      entries.removeAll { $0.hash == hash }
      entries.append(Entry(hash: hash, bytes: bytes))
      var total = entries.reduce(0) { $0 + $1.bytes.count }
      while total > Self.maximumBytes { total -= entries.removeFirst().bytes.count }
    }
  }

  func removeAll() { entries.withLock { $0.removeAll() } }
}
