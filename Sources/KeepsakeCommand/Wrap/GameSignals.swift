#if Cloud
import Foundation
import KeepsakePlatform
import Synchronization
/// The signals of a wrapped game. Before the game starts and after it has ended they are this command's; while it runs
/// they are passed on, unless they came from the terminal, which gives them to the game itself.
enum GameSignals {
  /// Those that end programs, or that mean something to them.
  private static let passedOn = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT]

  private static let running = Atomic<Int32>(0)
  private static let writeEnd = Atomic<Int32>(-1)
  private static let ignoredPipe = Mutex<Bool?>(nil)
  private static let caught = Mutex<(ignored: [Int32], isCatching: Bool)>(([], false))

  /// The process that signals are passed on to; 0 if there is none.
  static var game: pid_t {
    get { running.load(ordering: .sequentiallyConsistent) }
    set { running.store(newValue, ordering: .sequentiallyConsistent) }
  }

  /// Sends a signal to the game, if it runs.
  static func pass(on number: Int32) {
    let game = game
    if game > 0 { kill(game, number) }
  }

  /// Remembers what the process was started with. Call it before SIGPIPE is ignored.
  static func rememberStart() {
    ignoredPipe.withLock { $0 = $0 ?? SignalAction.isIgnored(SIGPIPE) }
  }

  /// Signals that this process ignores, though it wasn't started like that.
  static var ignoredHere: [Int32] {
    caught.withLock { $0.ignored } + (ignoredPipe.withLock { $0 ?? true } ? [] : [SIGPIPE])
  }

  /// Catches the signals for the rest of the process, and returns those that come while no game runs. One that the
  /// process was started to ignore (`nohup`) stays ignored, by the game, too.
  static func catchAll() -> AsyncStream<Int32> {
    let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingNewest(4))
    caught.withLock { caught in
      guard !caught.isCatching else { return }
      caught.isCatching = true
      var ends: [Int32] = [-1, -1]
      guard pipe(&ends) == 0 else { return }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      let (readEnd, end) = (ends[0], ends[1])
      writeEnd.store(end, ordering: .sequentiallyConsistent)
      // Read once before the handler may run: the first access of a global isn't safe in one.
      game = 0
      Thread.detachNewThread {
        var byte: UInt8 = 0
        while true {
          let count = read(readEnd, &byte, 1)
          if count == 1 { continuation.yield(Int32(byte)) } else if count == 0 || errno != EINTR { return }
        }
      }
      for number in passedOn where !SignalAction.isIgnored(number) { install(number) }
      if !SignalAction.isIgnored(SIGTSTP) {
        signal(SIGTSTP, SIG_IGN)
        caught.ignored.append(SIGTSTP)
      }
    }
    return stream
  }

  private static func install(_ number: Int32) {
    let handler: SignalAction.Handler = { number, info, _ in
      let number = number
      let saved = errno
      let game = GameSignals.running.load(ordering: .sequentiallyConsistent)
      if game > 0 {
        // The terminal sends its signals to the whole group, the game included.
        if !SignalAction.isOfSystem(info) { kill(game, number) }
      } else if number != SIGCONT {
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(GameSignals.writeEnd.load(ordering: .sequentiallyConsistent), &byte, 1)
      }
      errno = saved
    }
    SignalAction.install(handler, for: number)
  }
}
#endif
