import Foundation
import KeepsakeReplication
import Synchronization

/// A file beside a database which records that something was wrong with it. The next opening then checks all of it,
/// however large it is.
final class Suspicion: Sendable {
  private enum State {
    case none
    case noted(Data)
    /// The text that could not be written yet.
    case owed(Data)
  }

  private let url: URL
  /// Without the database's own files in the folder, what is there now isn't suspect.
  private let presence: FilePresence
  private let state = Mutex(State.none)

  init(at url: URL, _ presence: FilePresence) { (self.url, self.presence) = (url, presence) }

  /// What the file says, whether or not it could be written; nil if nothing was wrong.
  var text: Data? {
    state.withLock { state in
      switch state {
      case .none: nil
      case .noted(let text), .owed(let text): text
      }
    }
  }

  /// Writes the file, once. If that fails, the damage is still the error to report, and `settle` tries again.
  func note(_ reason: any Error) {
    state.withLock { state in
      if case .noted = state { return }
      let text = Data("\(reason)\n".utf8)
      guard presence.isCertain else {
        state = .owed(text)
        return
      }
      do {
        try AtomicFile.write(text, to: url)
        state = .noted(text)
      } catch {
        state = .owed(text)
      }
    }
  }

  /// Writes what could not be written yet, at the latest before the database is closed. Returns the incident to report
  /// if that fails again.
  func settle() -> StoreIncident? {
    state.withLock { state in
      guard case .owed(let text) = state, presence.isCertain else { return nil }
      do {
        try AtomicFile.write(text, to: url)
        state = .noted(text)
        return nil
      } catch {
        return StoreIncident(
          .unnoted,
          """
          damage was found in \(url.deletingLastPathComponent().path), but could not be recorded for the next start: \
          run `keepsake doctor` (\(ErrorReason.text(error)))
          """)
      }
    }
  }
}
