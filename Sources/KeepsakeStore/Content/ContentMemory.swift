import Foundation
import KeepsakeReplication
import Synchronization

/// What a store remembers about its contents outside the database: plain bytes used recently, which contents are part
/// of a commit in progress, and which have proved readable.
final class ContentMemory: Sendable {
  let cache = PlainCache()
  private let held = Mutex<[ContentHash: Int]>([:])
  private let proven = Mutex<Set<ContentHash>>([])
  private let lostPage = Mutex(false)

  /// Keeps contents from being collected until they are released as many times as they were held: a save in preparation
  /// found them here, or wrote them ahead of its commit.
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

  /// Returns whether the content was written, or read in full, since the store was opened. Decoding each segment of a
  /// large save again at each save would cost more than the save.
  func isProven(_ hash: ContentHash) -> Bool { proven.withLock { $0.contains(hash) } }

  func setProven(_ hash: ContentHash, _ isProven: Bool = true) {
    proven.withLock { proven in
      if isProven { proven.insert(hash) } else { proven.remove(hash) }
    }
  }

  /// Records that SQLite couldn't read a page that holds a content. The database checks this after each access, and
  /// makes the next opening check everything.
  func recordLostPage() { lostPage.withLock { $0 = true } }

  func takeLostPage() -> Bool {
    lostPage.withLock { lostPage in
      defer { lostPage = false }
      return lostPage
    }
  }

  /// For a transaction that was rolled back: what it wrote in place of something damaged isn't there.
  func forgetProven() { proven.withLock { $0.removeAll() } }

  /// Forgets everything that was read, as after opening.
  func forgetPlain() {
    cache.removeAll()
    forgetProven()
  }
}
