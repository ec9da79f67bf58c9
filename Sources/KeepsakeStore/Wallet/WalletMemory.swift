import Foundation
import KeepsakeReplication
import Synchronization

/// Caches the wallet as it was written or read last: it may have many operations that no bank knows, and is requested
/// often.
///
/// A lookup compares the row, so that a wallet whose row was changed since, or rolled back, isn't found. A committed
/// wallet stays cached until another one is committed: a read during a write, or after one that failed, must not have
/// to decode all operations again.
final class WalletMemory: Sendable {
  private struct Known {
    var body: Data
    var book: WalletBook
    var state: WalletState
  }
  private struct Content {
    /// The last two, newest last: a concurrent reader may still see the one before.
    var committed: [Known] = []
    /// Those of the current transaction, oldest first: parts of it may be rolled back.
    var uncommitted: [Known] = []

    mutating func keep(_ known: Known) { committed = committed.suffix(1) + [known] }
  }

  /// More commits than ever share a transaction. Each entry holds another copy of the book.
  private static let maximumUncommitted = 64

  private let content = Mutex(Content())

  func wallet(in body: Data) -> (book: WalletBook, state: WalletState)? {
    content.withLock { content in
      let known = content.uncommitted.last { $0.body == body } ?? content.committed.last { $0.body == body }
      return known.map { ($0.book, $0.state) }
    }
  }

  /// Caches a wallet that was read.
  func insert(_ book: WalletBook, _ state: WalletState, body: Data) {
    content.withLock { $0.keep(Known(body: body, book: book, state: state)) }
  }

  /// Caches a wallet that was written. Returns whether it is the first of its transaction.
  func insertUncommitted(_ book: WalletBook, _ state: WalletState, body: Data) -> Bool {
    content.withLock { content in
      let isFirst = content.uncommitted.isEmpty
      content.uncommitted.append(Known(body: body, book: book, state: state))
      if content.uncommitted.count > Self.maximumUncommitted { content.uncommitted.removeFirst() }
      return isFirst
    }
  }

  func commit() {
    content.withLock { content in
      if let last = content.uncommitted.last { content.keep(last) }
      content.uncommitted = []
    }
  }

  func rollBack() { content.withLock { $0.uncommitted = [] } }
}
