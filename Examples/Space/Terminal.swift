import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The terminal in which the game is played. Reads each key when it is pressed, uses a screen of its own, and restores
/// everything afterwards.
final class Terminal {
  enum Key { case left, right, up, quit, other }

  /// The maximum size: nobody sees more at once, and a terminal may report any size.
  private static let maximum = (columns: 400, rows: 200)
  private static let take = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[2J"
  private static let giveBack: StaticString = "\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l"
  /// The terminal's original attributes, where a signal handler can read them.
  nonisolated(unsafe) private static let before = UnsafeMutablePointer<termios>.allocate(capacity: 1)

  private var isTaken = false
  /// Whether the input has ended: the terminal was closed, or the process that wrote the input ended.
  private(set) var isAtEnd = false

  /// Throws if standard input and output aren't a terminal.
  init() throws {
    guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, Self.before) == 0 else {
      throw Problem(
        "Space is played in a terminal: standard input and output must be the terminal, not a file or a pipe.")
    }
    // If the game crashes, or is ended with Ctrl-\, the terminal is restored. After SIGKILL it can't be; use the
    // command `reset`.
    for number in [SIGQUIT, SIGABRT, SIGILL, SIGTRAP, SIGSEGV, SIGBUS] {
      signal(number) { number in
        _ = write(STDOUT_FILENO, Terminal.giveBack.utf8Start, Terminal.giveBack.utf8CodeUnitCount)
        tcsetattr(STDIN_FILENO, TCSANOW, Terminal.before)
        signal(number, SIG_DFL)
        raise(number)
      }
    }
  }

  func take() {
    var raw = Self.before.pointee
    // Signals stay enabled, so that Ctrl-C, Ctrl-Z and Ctrl-\ work as usual.
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
    tcsetattr(STDIN_FILENO, TCSANOW, &raw)
    isTaken = true
    show(Self.take)
  }

  func restore() {
    guard isTaken else { return }
    show(String(describing: Self.giveBack))
    tcsetattr(STDIN_FILENO, TCSANOW, Self.before)
    isTaken = false
  }

  /// The size in characters; 80 by 24, the traditional size, if the terminal doesn't report one.
  var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
    return (min(Int(size.ws_col), Self.maximum.columns), min(Int(size.ws_row), Self.maximum.rows))
  }

  /// Returns the keys that were pressed since the last call.
  func keys() -> [Key] {
    var keys: [Key] = []
    var bytes: [UInt8] = Array(repeating: 0, count: 256)
    var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    guard !isAtEnd, poll(&input, 1, 0) > 0 else { return [] }
    let count = read(STDIN_FILENO, &bytes, bytes.count)
    guard count > 0 else {
      isAtEnd = count == 0 || errno != EINTR
      return []
    }
    let letters: [UInt8: Key] = [0x61: .left, 0x64: .right, 0x77: .up, 0x20: .up, 0x71: .quit, 0x04: .quit]
    var rest = bytes[..<count]
    while let byte = rest.popFirst() {
      // Arrow keys are three bytes: escape, a bracket (or O), a letter.
      if byte == 0x1B, rest.count >= 2, [0x5B, 0x4F].contains(rest[rest.startIndex]) {
        rest.removeFirst()
        keys.append([0x41: .up, 0x43: .right, 0x44: .left][rest.removeFirst()] ?? .other)
      } else {
        keys.append(letters[byte | (byte >= 0x41 ? 0x20 : 0)] ?? .other)
      }
    }
    return keys
  }

  /// Writes to the terminal. If the terminal was closed, the next call of `keys` detects it.
  func show(_ text: String) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      guard count >= 0 || errno == EINTR else { return }
      bytes = bytes.dropFirst(max(count, 0))
    }
  }
}
