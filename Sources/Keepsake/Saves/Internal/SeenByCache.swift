import KeepsakeReplication
import Synchronization

/// Which slots' statuses are looked at, and what the cloud said last of who has what stands there. Behind a lock, because a status never
/// waits.
final class SeenByCache: Sendable {
  /// What the cloud said about what stood in a slot.
  struct Answer: Sendable {
    var heads: [VersionID]
    /// Nil if the cloud doesn't know.
    var devices: [CloudDevice]?
  }

  /// Somebody looks at a slot's status, until this is let go of.
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
    /// One for each slot at most, the newest.
    var answers: [String: Answer] = [:]
  }
  private let state = Mutex(State())

  func look(at slot: String) -> Look { Look(self, slot) }

  /// The slots that are looked at.
  var slots: Set<String> { state.withLock { Set($0.looks.keys) } }

  func note(_ answers: [String: Answer]) { state.withLock { $0.answers.merge(answers) { $1 } } }

  /// The cloud is another one, or another player's.
  func forget() { state.withLock { $0.answers = [:] } }

  /// Who has these versions, which stand in the slot; nil if that isn't known.
  func devices(of slot: String, having heads: [VersionID]) -> [CloudDevice]? {
    state.withLock { state in
      guard let answer = state.answers[slot], answer.heads == heads else { return nil }
      return answer.devices
    }
  }
}
