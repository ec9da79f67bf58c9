package import KeepsakePlatform
import Synchronization

/// What has to be finished before the process ends by `exit`, or by returning from `main`: commits that were accepted
/// are otherwise lost with the threads that write them.
///
/// Not called when a signal, `abort` or `_exit` ends the process.
package enum ExitWork {
  /// Finishes some work, and returns whether that was possible before the deadline.
  package typealias Finishing = @Sendable (_ deadline: ContinuousClock.Instant) -> Bool

  private struct Entry {
    var finish: Finishing
    /// False for work that is done only when the process ends.
    var isInFlight: Bool
    /// Tells the system that it is done.
    var isDone: @Sendable () -> Void
  }
  private struct State {
    var limit = Duration.seconds(2)
    /// Replaced by tests.
    var activity = ProcessActivity.system
    var work: [UInt64: Entry] = [:]
    var last: UInt64 = 0
    /// What is called when the work with these numbers has ended.
    var waiters: [(numbers: Set<UInt64>, body: @Sendable () -> Void)] = []
    /// The process that the handler was installed in; a process that it forked has none of its threads.
    var process: Int32?
    var isEnding = false
    /// What was written to standard error.
    var reported: Set<String> = []
  }
  private static let state = Mutex(State())

  /// How long the end of the process may be delayed. Zero: not at all.
  package static var limit: Duration {
    get { state.withLock { $0.limit } }
    set { state.withLock { $0.limit = newValue } }
  }

  /// How the system is told that there is work, so that it doesn't end the process without calling `exit`.
  package static var activity: ProcessActivity {
    get { state.withLock { $0.activity } }
    set { state.withLock { $0.activity = newValue } }
  }

  /// Whether the process is ending and waits for work.
  package static var isEnding: Bool { state.withLock { $0.isEnding } }

  /// Writes to standard error what went wrong while the process ends: nothing else can report it then. Does nothing
  /// earlier, and writes each sentence once.
  package static func report(_ sentence: @autoclosure () -> String) {
    guard isEnding else { return }
    let sentence = sentence()
    guard state.withLock({ $0.reported.insert(sentence).inserted }) else { return }
    SystemCall.writeError("keepsake: \(sentence)\n")
  }

  /// Adds work that has begun.
  ///
  /// - Parameter isInFlight: False for work that is done only when the process ends.
  /// - Returns: A number for `end`.
  package static func begin(isInFlight: Bool = true, _ finish: @escaping Finishing) -> UInt64 {
    let isDone = activity.beginWork()
    let (number, isFirst) = state.withLock { state in
      state.last += 1
      state.work[state.last] = Entry(finish: finish, isInFlight: isInFlight, isDone: isDone)
      let isFirst = state.process == nil
      if isFirst { state.process = SystemCall.processNumber }
      return (state.last, isFirst)
    }
    if isFirst { atexit { ExitWork.finishAll() } }
    return number
  }

  /// Removes work that is done.
  package static func end(_ number: UInt64) {
    let (entry, due) = state.withLock { state in
      for index in state.waiters.indices { state.waiters[index].numbers.remove(number) }
      let due = state.waiters.filter(\.numbers.isEmpty)
      state.waiters.removeAll(where: \.numbers.isEmpty)
      return (state.work.removeValue(forKey: number), due)
    }
    entry?.isDone()
    for waiter in due { waiter.body() }
  }

  /// Calls `body` when all work has ended that is in flight now: at once, or on the thread that ends the last of it.
  package static func afterWorkInFlight(_ body: @escaping @Sendable () -> Void) {
    let isIdle = state.withLock { state in
      let numbers = Set(state.work.filter(\.value.isInFlight).keys)
      if !numbers.isEmpty { state.waiters.append((numbers, body)) }
      return numbers.isEmpty
    }
    if isIdle { body() }
  }

  private static func finishAll() {
    let limit = state.withLock { state in
      state.isEnding = state.limit > .zero && state.process == SystemCall.processNumber
      return state.limit
    }
    guard isEnding else { return }
    let deadline = ContinuousClock.now + limit
    // Finishing one may begin another: preferences become a commit.
    while let (number, entry) = state.withLock({ $0.work.min { $0.key < $1.key } }) {
      guard entry.finish(deadline) else {
        report(
          """
          the program ended before everything that the game had captured was saved (waited \(limit)): close the game's \
          data, or wait for its saves, before the program ends
          """)
        return
      }
      end(number)
    }
  }
}
