#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Synchronization

/// What a server tells the others that use its database: at once, and then many things in one notice.
///
/// Beside the transactions, and not within them: the database lets those that notify be committed only one after the
/// other. What is lost, as when the server ends, others find with their next heartbeat
/// (PostgreSQLWatch).
final class PostgreSQLNotices: Sendable {
  static let channel = "keepsake"
  /// A notice is shorter than 8,000 bytes.
  private static let perNotice = 100
  /// Between two notices, each of which is a transaction that wakes all servers; and the same after one that said so
  /// few things that others are hardly waiting.
  private static let pause = Duration.milliseconds(20)
  private static let shortPause = Duration.milliseconds(1)
  private static let few = 2

  private struct State {
    /// The newest of each container.
    var moved: [ContainerID: UInt64] = [:]
    var ended: [EventHub.Relayed] = []
    var isSending = false
  }
  private let state = Mutex(State())
  /// Tells its own notices from the others'.
  private let sender = Hexadecimal.text(UInt64.random(in: .min ... .max))

  func add(_ relayed: EventHub.Relayed, send: @escaping @Sendable ([String]) async -> Void) {
    let isFirst = state.withLock { state in
      switch relayed {
      case .moved(let container, let seq): state.moved[container] = max(seq, state.moved[container] ?? 0)
      case .ended: state.ended.append(relayed)
      }
      defer { state.isSending = true }
      return !state.isSending
    }
    guard isFirst else { return }
    Task {
      // However long one takes, the next waits for it.
      while let due = next() {
        await send(due.texts)
        // Cancelled by nobody.
        try? await Task.sleep(for: due.count > Self.few ? Self.pause : Self.shortPause)
      }
    }
  }

  /// Returns the notices that are due, and how many things they say; nil if there are none.
  private func next() -> (texts: [String], count: Int)? {
    state.withLock { state in
      let due = state.moved.map { EventHub.Relayed.moved($0.key, $0.value) } + state.ended
      (state.moved, state.ended) = ([:], [])
      state.isSending = !due.isEmpty
      if due.isEmpty { return nil }
      let texts = stride(from: 0, to: due.count, by: Self.perNotice).map { start in
        ([sender] + due[start..<min(start + Self.perNotice, due.count)].map(Self.text)).joined(separator: " ")
      }
      return (texts, due.count)
    }
  }

  /// Reads a notice; nothing if it is this server's own. What isn't understood is left out: a newer server may say
  /// more.
  func read(_ text: String) -> [EventHub.Relayed] {
    let words = text.split(separator: " ")
    guard let first = words.first, first != sender else { return [] }
    return words.dropFirst().compactMap(Self.relayed)
  }

  private static func text(_ relayed: EventHub.Relayed) -> String {
    switch relayed {
    case .moved(let container, let seq): "moved:\(container):\(seq)"
    case .ended(let container, let device): "ended:\(container):\(device.map { "\($0)" } ?? "")"
    }
  }

  private static func relayed(_ word: Substring) -> EventHub.Relayed? {
    let parts = word.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 3, let container = ContainerID(String(parts[1])) else { return nil }
    switch parts[0] {
    case "moved": return UInt64(parts[2]).map { .moved(container, $0) }
    case "ended":
      if parts[2].isEmpty { return .ended(container, nil) }
      return DeviceID(String(parts[2])).map { .ended(container, $0) }
    default: return nil
    }
  }
}
#endif
