import Foundation
import KeepsakeReplication
import Synchronization

/// What a store remembers of its contents beside the database: plain bytes used lately, which contents are on their way into a commit, and
/// which have proved to be readable.
final class ContentMemory: Sendable {
  let cache = PlainCache()
  private let held = Mutex<[ContentHash: Int]>([:])
  private let proven = Mutex<Set<ContentHash>>([])
  private let lostPage = Mutex(false)

  /// Keeps contents from being collected until they are released as often: a save that is being prepared found them here, or put them here
  /// ahead of its commit.
  func hold(_ hashes: [ContentHash]) {
    held.withLock { held in
      for hash in hashes { held[hash, default: 0] += 1 }
    }
  }

  func release(_ hashes: [ContentHash]) {
    held.withLock { held in
      for hash in hashes {
        guard let count = held[hash] else { continue }
        held[hash] = count > 1 ? count - 1 : nil
      }
    }
  }

  func isHeld(_ hash: ContentHash) -> Bool { held.withLock { $0[hash] != nil } }

  /// Whether the content was written or read whole since the store was opened. To decode each part of a large save again at each save would
  /// cost more than the save.
  func isProven(_ hash: ContentHash) -> Bool { proven.withLock { $0.contains(hash) } }

  func setProven(_ hash: ContentHash, _ isProven: Bool = true) {
    proven.withLock { proven in
      if isProven { proven.insert(hash) } else { proven.remove(hash) }
    }
  }

  /// SQLite could not read a page that a content lies on. Whoever lent the database asks for it, and has the next opening look at everything.
  func recordLostPage() { lostPage.withLock { $0 = true } }

  func takeLostPage() -> Bool {
    lostPage.withLock { lostPage in
      defer { lostPage = false }
      return lostPage
    }
  }

  /// A transaction was taken back: what it wrote in the place of something damaged is not there.
  func forgetProven() { proven.withLock { $0.removeAll() } }

  /// Forgets all that was read, as after opening.
  func forgetPlain() {
    cache.removeAll()
    forgetProven()
  }
}
