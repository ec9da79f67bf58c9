#if Cloud
import Foundation
import Synchronization
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A game that runs in this process's place: with its terminal, its input and output, in its process group, and with
/// the signals' actions that this process was started with.
///
/// `Foundation.Process` gives a child a process group of its own, which takes the terminal from a game.
enum GameProcess {
  /// How a game ended.
  enum End: Hashable, Sendable {
    case exit(Int32)
    case signal(Int32)

    /// The exit status of a command that ends as the game did: as shells have it.
    var status: Int32 {
      switch self {
      case .exit(let status): status
      case .signal(let number): 128 + number
      }
    }
  }

  /// Starts a game, which is looked up in `PATH` if its name has no slash.
  ///
  /// - Throws: `CommandFailure` if it can't be started.
  static func start(_ command: [String]) throws -> pid_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var mask = GameSignals.maskAtStart
    posix_spawnattr_setsigmask(&attributes, &mask)
    // What is caught here is reset by itself; what is ignored here would be ignored by the game, too.
    var ignored = sigset_t()
    sigemptyset(&ignored)
    for number in GameSignals.ignoredHere { sigaddset(&ignored, number) }
    posix_spawnattr_setsigdefault(&attributes, &ignored)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF))
    var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    let number = posix_spawnp(&process, command[0], nil, &attributes, &arguments, environ)
    guard number == 0 else {
      throw CommandFailure(
        CommandFailure.Kind(errno: number), "can't start \(command[0]): \(String(cString: strerror(number)))",
        next: "check the command after --")
    }
    GameSignals.game = process
    return process
  }

  /// Waits for the game, on a thread of its own, and calls `ended`.
  static func wait(for process: pid_t, _ ended: @escaping @Sendable (End) -> Void) {
    Thread.detachNewThread {
      var status: Int32 = 0
      while true {
        guard waitpid(process, &status, WUNTRACED) == process else {
          if errno == EINTR { continue }
          // Nobody else waits for it, so this doesn't happen; a status that no game would give says that it did.
          return ended(.exit(CommandFailure.Kind.software.rawValue))
        }
        // The macros of <sys/wait.h> aren't imported.
        let low = status & 0x7F
        if low == 0 {
          GameSignals.game = 0
          return ended(.exit((status >> 8) & 0xFF))
        }
        if status & 0xFF != 0x7F {
          GameSignals.game = 0
          return ended(.signal(low))
        }
        // A key of the terminal has stopped the game, in its own time. The shell waits for this process, so it has to
        // stop as well. What lets it go on lets the game go on, too, and not before: it would read from the terminal.
        if [SIGTSTP, SIGTTIN, SIGTTOU].contains((status >> 8) & 0xFF) {
          kill(getpid(), SIGSTOP)
        }
      }
    }
  }
}

/// The signals of a wrapped game. Before the game starts and after it has ended they are this command's; while it runs
/// they are passed on, unless they came from the terminal, which gives them to the game itself.
enum GameSignals {
  /// Those that end programs, or that mean something to them.
  private static let passedOn = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT]

  private static let running = Atomic<Int32>(0)
  private static let writeEnd = Atomic<Int32>(-1)
  private static let start = Mutex<(mask: sigset_t, ignoresPipe: Bool)?>(nil)
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

  /// Remembers what the process was started with. Call it first, on the main thread.
  static func rememberStart() {
    start.withLock { start in
      guard start == nil else { return }
      var mask = sigset_t()
      sigemptyset(&mask)
      pthread_sigmask(SIG_BLOCK, nil, &mask)
      start = (mask, isIgnored(SIGPIPE))
    }
  }

  static var maskAtStart: sigset_t {
    start.withLock { start in
      if let start { return start.mask }
      var empty = sigset_t()
      sigemptyset(&empty)
      return empty
    }
  }

  /// Signals that this process ignores, though it wasn't started like that.
  static var ignoredHere: [Int32] {
    caught.withLock { $0.ignored } + (start.withLock { $0?.ignoresPipe ?? true } ? [] : [SIGPIPE])
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
      for number in passedOn where !isIgnored(number) { install(number) }
      if !isIgnored(SIGTSTP) {
        signal(SIGTSTP, SIG_IGN)
        caught.ignored.append(SIGTSTP)
      }
    }
    return stream
  }

  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    sigaction(number, nil, &action)
    #if canImport(Darwin)
    let handler = action.__sigaction_u.__sa_handler
    #elseif canImport(Musl)
    let handler = action.__sa_handler.sa_handler
    #else
    let handler = action.__sigaction_handler.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  private static func install(_ number: Int32) {
    let handler: @convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void = {
      number, info, _ in
      let number = number
      let saved = errno
      let game = GameSignals.running.load(ordering: .sequentiallyConsistent)
      if game > 0 {
        // The terminal sends its signals to the whole group, the game included.
        if !GameSignals.isOfTerminal(info) { kill(game, number) }
      } else if number != SIGCONT {
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(GameSignals.writeEnd.load(ordering: .sequentiallyConsistent), &byte, 1)
      }
      errno = saved
    }
    var action = sigaction()
    #if canImport(Darwin)
    action.__sigaction_u.__sa_sigaction = { handler($0, $1, $2) }
    #elseif canImport(Musl)
    action.__sa_handler.sa_sigaction = handler
    #else
    action.__sigaction_handler.sa_sigaction = handler
    #endif
    action.sa_flags = SA_SIGINFO | Int32(SA_RESTART)
    sigemptyset(&action.sa_mask)
    sigaction(number, &action, nil)
  }

  private static func isOfTerminal(_ info: UnsafeMutablePointer<siginfo_t>?) -> Bool {
    #if canImport(Darwin)
    info?.pointee.si_pid == 0
    #else
    // SI_USER and what else a program sends are not above 0.
    (info?.pointee.si_code ?? 0) > 0
    #endif
  }
}
#endif
