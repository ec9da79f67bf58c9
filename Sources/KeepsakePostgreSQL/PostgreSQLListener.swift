#if PostgreSQL
import CPostgreSQL
import Foundation
import KeepsakePlatform
import Synchronization

/// Hears what sessions of a database notify each other of, on a connection and a thread of its own. Connects again when
/// the connection broke: what was said meanwhile is lost.
package final class PostgreSQLListener: Sendable {
  package enum Event: Hashable, Sendable {
    /// From now on nothing is missed.
    case listening
    case heard(String)
    /// From now on nothing is heard.
    case lost(PostgreSQLError)
    /// Nothing will ever be heard: the database doesn't have that.
    case missing(PostgreSQLError)
  }
  private let isClosed = Atomic(false)
  private let thread = Mutex<LibraryThread?>(nil)

  /// - Parameters:
  ///   - channel: Letters only.
  ///   - handle: Called on the listener's thread.
  package init(_ settings: PostgreSQLSettings, channel: String, handle: @escaping @Sendable (Event) -> Void) {
    let thread = LibraryThread("keepsake listener") { [self] in
      while !isOver {
        do throws(PostgreSQLError) {
          let connection = try PostgreSQLConnection(settings)
          _ = try connection.run([PostgreSQLStatement("LISTEN \(channel)")])
          handle(.listening)
          while !isOver {
            for text in try connection.notices(waitingMilliseconds: 200) { handle(.heard(text)) }
          }
        } catch {
          if error.isMissing {
            handle(.missing(error))
            break
          }
          handle(.lost(error))
          for _ in 0..<5 where !isOver { Thread.sleep(forTimeInterval: 0.2) }
        }
      }
    }
    if thread == nil { handle(.lost(.unreachable("the system can't have another thread"))) }
    self.thread.withLock { $0 = thread }
  }

  private var isOver: Bool { isClosed.load(ordering: .relaxed) }

  /// Closes the connection. Blocks for a moment.
  package func close() {
    isClosed.store(true, ordering: .relaxed)
    thread.withLock { $0 }?.join()
  }
}

extension PostgreSQLConnection {
  /// Waits for notices to channels that this connection listens to, and returns what they say.
  fileprivate func notices(waitingMilliseconds: Int32) throws(PostgreSQLError) -> [String] {
    var polled = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
    let number = poll(&polled, 1, waitingMilliseconds)
    if number == 0 || (number < 0 && errno == EINTR) { return [] }
    return try takeNotices()
  }
}
#endif
