#if Cloud
import Foundation
import KeepsakePlatform
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
  /// - Parameter command: The game and its arguments, byte for byte: what they mean is known to the game alone.
  /// - Throws: `CommandFailure` if it can't be started.
  static func start(_ command: [[UInt8]]) throws -> pid_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // This thread may be one of a pool's, which blocks nearly all signals: a game that inherits that can't be ended.
    var mask = sigset_t()
    sigemptyset(&mask)
    posix_spawnattr_setsigmask(&attributes, &mask)
    // What is caught here is reset by itself; what is ignored here would be ignored by the game, too.
    var ignored = sigset_t()
    sigemptyset(&ignored)
    for number in GameSignals.ignoredHere { sigaddset(&ignored, number) }
    posix_spawnattr_setsigdefault(&attributes, &ignored)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF))
    let words = command.map { $0.map { CChar(bitPattern: $0) } + [0] }
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    let number = posix_spawnp(&process, words[0], nil, &attributes, &arguments, environ)
    guard number == 0 else {
      // What is there is neither a program nor a script that says what runs it.
      throw CommandFailure(
        number == ENOEXEC ? .data : CommandFailure.Kind(errno: number),
        "can't start \(String(decoding: command[0], as: UTF8.self)): \(String(cString: strerror(number)))",
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
#endif
