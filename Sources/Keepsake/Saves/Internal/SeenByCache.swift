import KeepsakeReplication
import Synchronization

/// The slots whose status is observed, and the cloud's last response about which devices have their current versions.
/// Synchronized by a lock, because reading a status never waits.
final class SeenByCache: Sendable {
  /// The cloud's response about the versions that a slot had.
  struct Answer: Sendable {
    var heads: [VersionID]
    /// Nil if the cloud doesn't know.
    var devices: [CloudDevice]?
  }

  /// Marks a slot's status as observed until this object is released.
  final class Look: Sendable {
    private let board: SeenByCache
    private let slot: String

    init(_ board: SeenByCache, _ slot: String) {
      self.board = board
      self.slot = slot
      board.state.withLock { $0.looks[slot, default: 0] += 1 }
    }

    deinit {
      board.state.withLock { state in
        let left = (state.looks[slot] ?? 1) - 1
        state.looks[slot] = left > 0 ? left : nil
      }
    }
  }

  private struct State {
    var looks: [String: Int] = [:]
    /// At most one for each slot, the newest.
    var answers: [String: Answer] = [:]
  }
  private let state = Mutex(State())

  func look(at slot: String) -> Look { Look(self, slot) }

  /// The slots whose status is observed.
  var slots: Set<String> { state.withLock { Set($0.looks.keys) } }

  func note(_ answers: [String: Answer]) { state.withLock { $0.answers.merge(answers) { $1 } } }

  /// Removes all responses, because the cloud is another one, or another player's.
  func forget() { state.withLock { $0.answers = [:] } }

  /// Returns the devices that have these versions, the slot's heads; nil if that isn't known.
  func devices(of slot: String, having heads: [VersionID]) -> [CloudDevice]? {
    state.withLock { state in
      guard let answer = state.answers[slot], answer.heads == heads else { return nil }
      return answer.devices
    }
  }
}
