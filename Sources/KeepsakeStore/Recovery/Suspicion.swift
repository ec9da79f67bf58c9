import Foundation
import Synchronization

/// A note beside a database that something was amiss with it: the next opening looks at all of it, however large it is.
final class Suspicion: Sendable {
  private enum State {
    case none
    case noted
    /// What the disk didn't take yet.
    case owed(Data)
  }

  private let url: URL
  private let state = Mutex(State.none)

  init(at url: URL) { self.url = url }

  /// Writes the note, once. Where that fails the damage is still what has to be told, and `settle` tries again.
  func note(_ reason: any Error) {
    state.withLock { state in
      if case .noted = state { return }
      let text = Data("\(reason)\n".utf8)
      do {
        try AtomicFile.write(text, to: url)
        state = .noted
      } catch {
        state = .owed(text)
      }
    }
  }

  /// Writes what is still owed, at the latest before the database is closed. What is wrong then has to be told.
  func settle() -> StoreIncident? {
    state.withLock { state in
      guard case .owed(let text) = state else { return nil }
      do {
        try AtomicFile.write(text, to: url)
        state = .noted
        return nil
      } catch {
        return StoreIncident(
          .unnoted,
          "damage was met in \(url.deletingLastPathComponent().path), and could not be noted for the next start: keepsake doctor finds it (\(error))"
        )
      }
    }
  }
}
