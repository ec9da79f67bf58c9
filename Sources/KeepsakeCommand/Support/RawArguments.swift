#if Cloud
import KeepsakePlatform

/// The arguments of this process as the system passed them. Swift's own list has a replacement character wherever they
/// aren't UTF-8, and so names other files than were meant.
enum RawArguments {
  /// How much of an argument is shown.
  private static let bytesShown = 200

  /// The bytes of each, without the program's name.
  static let all: [[UInt8]] = (1..<max(Int(CommandLine.argc), 1)).compactMap { index in
    CommandLine.unsafeArgv[index].map { start in
      Array(UnsafeBufferPointer(start: start, count: strlen(start))).map { UInt8(bitPattern: $0) }
    }
  }

  /// Returns the failure of a command with arguments that aren't UTF-8; nil if they all are. The command line of a game
  /// is passed on as it is, whatever it is.
  static func failure(in arguments: [[UInt8]]) -> CommandFailure? {
    let isWrap = arguments.first == Array("wrap".utf8)
    let own = isWrap ? arguments.prefix { $0 != Array("--".utf8) } : arguments[...]
    guard let index = own.firstIndex(where: { String(validating: $0, as: UTF8.self) == nil }) else { return nil }
    return CommandFailure(
      .usage, "argument \(index + 1) isn't valid UTF-8: \(shown(own[index]))",
      next: """
        give the file or folder a name in UTF-8, or make a link that has one: ln -s; a file can also be read from \
        standard input: keepsake inspect - < file
        """)
  }

  /// Returns the bytes of the last arguments, which the parser returned as these texts.
  ///
  /// - Parameter all: All arguments.
  static func bytes(of last: [String], in all: [[UInt8]] = all) -> [[UInt8]] {
    let bytes = Array(all.suffix(last.count))
    // Not those of this process: a test has made them.
    guard bytes.map({ String(decoding: $0, as: UTF8.self) }) == last else { return last.map { Array($0.utf8) } }
    return bytes
  }

  /// Returns the beginning of an argument as text in which bytes that aren't UTF-8 are shown by their numbers.
  private static func shown(_ bytes: [UInt8]) -> String {
    var text = ""
    var rest = bytes.prefix(bytesShown)
    while !rest.isEmpty {
      let count = (0...rest.count).last { String(validating: rest.prefix($0), as: UTF8.self) != nil } ?? 0
      text += String(decoding: rest.prefix(count), as: UTF8.self)
      rest = rest.dropFirst(count)
      guard let byte = rest.popFirst() else { break }
      text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
    return text + (bytes.count > bytesShown ? "..." : "")
  }
}
#endif
