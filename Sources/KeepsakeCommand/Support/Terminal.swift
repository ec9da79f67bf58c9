#if Cloud
import ArgumentParser
import Foundation
import KeepsakeInspection
import KeepsakePlatform
/// The option of commands whose text has colors on a terminal.
struct ColorOptions: ParsableArguments {
  @Flag(name: .customLong("no-color"), help: "Print no colors, even on a terminal.")
  var isOff = false

  /// What standard output can show.
  var terminal: Terminal { .standardOutput(noColor: isOff) }
}

/// What the device behind an output can show.
struct Terminal {
  /// Its width in columns; nil if it isn't a terminal.
  var width: Int?
  var hasColor: Bool

  /// Neither colors nor a width, as for a pipe.
  static let plain = Terminal(width: nil, hasColor: false)

  /// Narrower than this, nothing is cut: it would be a mistake of the terminal.
  private static let narrowest = 20

  static func standardOutput(noColor: Bool = false) -> Terminal {
    Terminal(
      isTerminal: isatty(STDOUT_FILENO) == 1, columns: columns(of: STDOUT_FILENO),
      environment: ProcessInfo.processInfo.environment, noColor: noColor)
  }

  /// - Parameter columns: How many the system says that the terminal has; nil if it doesn't.
  init(isTerminal: Bool, columns: Int?, environment: [String: String], noColor: Bool = false) {
    let wanted = columns ?? environment["COLUMNS"].flatMap { Int($0) }
    width = isTerminal ? wanted.flatMap { $0 >= Self.narrowest ? $0 : nil } : nil
    func isSet(_ name: String) -> Bool { environment[name].map { !$0.isEmpty } ?? false }
    func isForced(_ name: String) -> Bool { isSet(name) && environment[name] != "0" }
    // What forbids colors counts more than what asks for them.
    hasColor =
      !noColor && !isSet("NO_COLOR")
      && (isForced("CLICOLOR_FORCE")
        || (isTerminal && isSet("TERM") && environment["TERM"] != "dumb" && environment["CLICOLOR"] != "0"))
  }

  private init(width: Int?, hasColor: Bool) {
    (self.width, self.hasColor) = (width, hasColor)
  }

  private static func columns(of descriptor: Int32) -> Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  // MARK: Colors

  /// Returns text in the colors of its role. The terminal's own sixteen are used, which its user has made readable.
  func paint(_ text: String, _ role: TextRole) -> String {
    guard hasColor, !text.isEmpty else { return text }
    let codes =
      switch role {
      case .heading: "1"
      case .name: "36"
      case .added, .good: "32"
      case .removed: "31"
      case .bad: "1;31"
      case .faint: "2"
      case .line(let number): Self.lineCodes[number % Self.lineCodes.count]
      }
    return "\u{1B}[\(codes)m\(text)\u{1B}[0m"
  }

  /// Cyan, magenta, green, yellow, blue, red.
  private static let lineCodes = ["36", "35", "32", "33", "34", "31"]

  // MARK: Width

  /// Returns a line that is cut off where the terminal ends. It must have no colors yet.
  func cut(_ text: String, after columns: Int = 0) -> String {
    guard let width else { return text }
    return Self.cut(text, to: max(width - columns, Self.narrowest))
  }

  /// Returns a text of at most so many columns.
  static func cut(_ text: String, to columns: Int) -> String {
    guard Self.columns(of: text) > columns else { return text }
    var (kept, used) = ("", 1)
    for character in text {
      used += Self.columns(of: character)
      guard used <= columns else { break }
      kept.append(character)
    }
    return kept + "…"
  }

  /// Returns how many columns a text takes.
  static func columns(of text: String) -> Int { text.reduce(0) { $0 + columns(of: $1) } }

  /// The scripts of East Asia, and emoji, take two.
  private static func columns(of character: Character) -> Int {
    guard let scalar = character.unicodeScalars.first else { return 0 }
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }
}
#endif
