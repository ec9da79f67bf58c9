/// Where something is in a text, as editors count.
///
/// Lines end with LF, CRLF or CR. A column counts characters (extended grapheme clusters): a tab, a letter with
/// combining accents and an emoji are one each. A byte order mark at the beginning isn't counted.
struct JSONPosition: Hashable, CustomStringConvertible {
  /// The line, from 1.
  let line: Int
  /// The column, from 1.
  let column: Int

  /// - Parameters:
  ///   - offset: The first byte of a character, or the number of bytes for the end.
  ///   - bytes: The whole text, in UTF-8.
  init(of offset: Int, in bytes: UnsafeBufferPointer<UInt8>) {
    var line = 1
    var start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? min(3, offset) : 0
    var isASCII = true
    for index in start..<offset {
      let byte = bytes[index]
      if byte == 0x0A || (byte == 0x0D && (index + 1 == bytes.count || bytes[index + 1] != 0x0A)) {
        (line, start, isASCII) = (line + 1, index + 1, true)
      } else if byte >= 0x80 {
        isASCII = false
      }
    }
    let before = bytes[start..<offset]
    self.line = line
    // Counting ASCII is the same, and takes no time for a file of one long line.
    column = 1 + (isASCII ? before.count : String(decoding: before, as: UTF8.self).count)
  }

  var description: String { "line \(line), column \(column)" }
}
