#if Cloud
import Foundation
import Yams

/// Finds the part of a manifest that is about one game, without parsing the rest.
enum ManifestText {
  private static let suggestions = 5

  /// Returns the lines of the game: its key, and what is indented below it. All bytes, if the manifest is JSON.
  ///
  /// - Throws: `GameManifestError` if there is no such game, or two.
  static func part(of game: String, in bytes: Data) throws(GameManifestError) -> Data {
    if isFlow(bytes) { return bytes }
    var found: [Range<Int>] = []
    var open: Int?
    eachKeyLine(in: bytes) { start, end in
      if let start = open { found.append(start..<end.start) }
      open = nil
      if let start, isKey(bytes[start..<end.end], of: game) { open = start }
    }
    guard let range = found.first else { throw unknown(game, in: bytes) }
    guard found.count == 1 else { throw GameManifestError(.form, "the manifest has this game twice", at: game) }
    return bytes[range]
  }

  static func unknown(_ game: String, in bytes: Data) -> GameManifestError {
    var similar: [String] = []
    if !isFlow(bytes) {
      let wanted = game.lowercased()
      eachKeyLine(in: bytes) { start, end in
        guard let start, similar.count < suggestions else { return }
        let line = String(decoding: bytes[start..<end.end], as: UTF8.self)
        if line.lowercased().contains(wanted) { similar.append(String(line.drop { "'\"".contains($0) }.prefix(60))) }
      }
    }
    let names = similar.map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "'\": \r")) }
    return GameManifestError(
      .unknownGame, "the manifest doesn't have this game", at: game,
      next: names.isEmpty
        ? "name it as the manifest does, or name the folder of its saves with --saves"
        : "it has \(names.joined(separator: ", "))")
  }

  /// Returns an upper bound of how deeply the text nests: by indentation, and by brackets.
  static func depth(of text: String) -> Int {
    var (brackets, deepest, indent) = (0, 0, 0)
    var isStart = true
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\n"): (isStart, indent) = (true, 0)
      case UInt8(ascii: " ") where isStart, UInt8(ascii: "-") where isStart, UInt8(ascii: "?") where isStart:
        indent += 1
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        isStart = false
        brackets += 1
      case UInt8(ascii: "]"), UInt8(ascii: "}"):
        isStart = false
        brackets = max(0, brackets - 1)
      default: isStart = false
      }
      deepest = max(deepest, brackets + indent / 2)
    }
    return deepest
  }

  /// Whether the whole is one value in brackets: JSON.
  private static func isFlow(_ bytes: Data) -> Bool {
    bytes.first { ![0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains($0) } == UInt8(ascii: "{")
  }

  /// Calls `body` for each line that isn't indented, and once with nil at the end.
  private static func eachKeyLine(in bytes: Data, _ body: (Int?, (start: Int, end: Int)) -> Void) {
    bytes.withUnsafeBytes { raw in
      var start = 0
      while start < raw.count {
        let rest = UnsafeRawBufferPointer(rebasing: raw[start...])
        // Not the collection's own search: a build without optimization would take seconds for a whole manifest.
        let end = rest.baseAddress.flatMap { base in memchr(base, 0x0A, rest.count).map { UnsafeRawPointer($0) - base }
        }
        let length = end ?? rest.count
        // Spaces and tabs continue the value before; a comment says nothing.
        if length > 0, ![0x20, 0x09, 0x0D, UInt8(ascii: "#")].contains(rest[0]) {
          let first = bytes.startIndex + start
          body(first, (first, first + length))
        }
        start += length + 1
      }
      body(nil, (bytes.endIndex, bytes.endIndex))
    }
  }

  /// Whether the line begins with the game's name as a key: plain, or in quotes.
  private static func isKey(_ line: Data, of game: String) -> Bool {
    let name = Array(game.utf8)
    if line.starts(with: name) { return followsColon(line.dropFirst(name.count)) }
    guard let quote = line.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return false }
    var end = line.startIndex + 1
    while end < line.endIndex, line[end] != quote {
      end += quote == UInt8(ascii: "\"") && line[end] == UInt8(ascii: "\\") ? 2 : 1
    }
    // A doubled quote in single quotes goes on.
    while quote == UInt8(ascii: "'"), end + 1 < line.endIndex, line[end + 1] == quote {
      end += 2
      while end < line.endIndex, line[end] != quote { end += 1 }
    }
    guard end < line.endIndex, followsColon(line[(end + 1)...]) else { return false }
    let key = line[...end]
    // Only what may be it is parsed: its first letters, unless they are escaped.
    let start = key.dropFirst().prefix { $0 != UInt8(ascii: "\\") && $0 != quote }
    guard name.starts(with: start), let text = String(validating: key, as: UTF8.self),
      let parsed = try? Yams.compose(yaml: text)?.scalar?.string
    else { return false }
    return parsed.utf8.elementsEqual(name)
  }

  private static func followsColon(_ rest: Data) -> Bool {
    let rest = rest.drop { $0 == 0x20 }
    guard rest.first == UInt8(ascii: ":") else { return false }
    return rest.count == 1 || [0x20, 0x0D, 0x09].contains(rest[rest.startIndex + 1])
  }
}
#endif
