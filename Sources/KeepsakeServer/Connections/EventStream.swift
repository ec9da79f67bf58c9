#if Cloud
import NIOCore
import Synchronization

/// An open event stream: the notices that wait for its connection, and what becomes of them.
///
/// Of those that wait, only the newest few are kept, so that a slow listener costs little; what it misses, it fetches
/// with an exchange.
final class EventStream: EventListener {
  /// What is to be written next.
  enum Next {
    case event(ByteBuffer)
    /// Nothing more comes.
    case end
  }
  private struct State {
    var waiting: [EventHub.Notice] = []
    var lastSent: UInt64 = 0
    var hasEnded = false
    var wake: (@Sendable () -> Void)?
  }
  private let state = Mutex(State())
  private let isAdmitted: @Sendable () -> Bool

  /// - Parameter isAdmitted: Whether the listener may be told more.
  init(isAdmitted: @escaping @Sendable () -> Bool) { self.isAdmitted = isAdmitted }

  func receive(_ notice: EventHub.Notice) {
    let wake = state.withLock { state in
      defer { state.waiting.append(notice) }
      guard state.waiting.isEmpty else {
        if state.waiting.count >= ServerLimits.noticesPerStream { state.waiting.removeFirst() }
        return nil as (@Sendable () -> Void)?
      }
      return state.wake
    }
    wake?()
  }

  func end() {
    let wake = state.withLock { state in
      state.hasEnded = true
      return state.wake
    }
    wake?()
  }

  /// Has `wake` called when something waits: at once, if it does now.
  ///
  /// - Parameter seq: What the listener knows.
  func begin(after seq: UInt64, _ wake: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.lastSent = seq
      state.wake = wake
    }
    wake()
  }

  /// Takes what is to be written next; nil if nothing waits.
  func next() -> Next? {
    let taken = state.withLock { state -> (notice: EventHub.Notice?, isNew: Bool)? in
      guard let notice = state.waiting.first else { return state.hasEnded ? (nil, false) : nil }
      state.waiting.removeFirst()
      defer { state.lastSent = max(state.lastSent, notice.seq) }
      return (notice, notice.seq > state.lastSent)
    }
    guard let taken else { return nil }
    guard let notice = taken.notice, isAdmitted() else { return .end }
    guard taken.isNew else { return .event(Self.heartbeat) }
    return .event(Self.line(notice.event ?? ByteBuffer(string: "{\"seq\":\(notice.seq)}")))
  }

  private static let heartbeat = ByteBuffer(string: ": still here\n\n")

  /// An event as the stream has it.
  static func line(_ json: ByteBuffer) -> ByteBuffer {
    var line = ByteBuffer(string: "data: ")
    line.writeImmutableBuffer(json)
    line.writeString("\n\n")
    return line
  }
}
#endif
