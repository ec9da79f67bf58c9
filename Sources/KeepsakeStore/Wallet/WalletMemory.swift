import Foundation
import KeepsakeReplication
import Synchronization

/// The wallet as it was written or read last: it may have many operations that a bank was never told, and is asked often.
///
/// It is asked with the row, so that one which was altered since, or rolled back, isn't found.
final class WalletMemory: Sendable {
  private struct Known {
    var body: Data
    var book: WalletBook
    var state: WalletState
  }

  private let known = Mutex<Known?>(nil)

  func wallet(in body: Data) -> (book: WalletBook, state: WalletState)? {
    known.withLock { known in
      guard let known, known.body == body else { return nil }
      return (known.book, known.state)
    }
  }

  func insert(_ book: WalletBook, _ state: WalletState, body: Data) {
    known.withLock { $0 = Known(body: body, book: book, state: state) }
  }
}
