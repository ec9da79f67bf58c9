import Foundation

/// Converts an XML file to UTF-8 from its encoding.
enum XMLText {
  private static let byteOrderMark = Data([0xEF, 0xBB, 0xBF])
  private static let latin: Set<String> = ["iso-8859-1", "latin1"]
  private static let unicode: Set<String> = ["utf-8", "utf8", "us-ascii", "ascii"]

  /// Returns whether the bytes begin like XML: with a byte order mark or `<`, after optional white space.
  static func begins(_ data: Data) -> Bool {
    if isUTF16(data) { return true }
    let text = data.starts(with: byteOrderMark) ? data.dropFirst(byteOrderMark.count) : data
    return text.first { !isSpace($0) } == UInt8(ascii: "<")
  }

  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D }

  /// Returns the text of a file as UTF-8. Throws `PropertyListError` for text that isn't valid in its declared
  /// encoding, and for encodings other than UTF-8, UTF-16 and Latin 1.
  static func utf8(_ data: Data) throws -> [UInt8] {
    if isUTF16(data) { return try fromUTF16([UInt8](data)) }
    let bytes = [UInt8](data.starts(with: byteOrderMark) ? data.dropFirst(byteOrderMark.count) : data)
    let declared = declaredEncoding(bytes)
    if let declared, latin.contains(declared) {
      return Array(String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })).utf8)
    }
    guard declared.map({ unicode.contains($0) }) ?? true else {
      throw PropertyListError(
        .unsupported, "The file declares the encoding \(declared ?? ""), which isn't supported: save it as UTF-8 first",
        line: 1)
    }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw PropertyListError(.damaged, "The text is not valid UTF-8: the file was cut off or altered")
    }
    return bytes
  }

  private static func isUTF16(_ data: Data) -> Bool {
    [[0xFE, 0xFF], [0xFF, 0xFE], [0x00, 0x3C], [0x3C, 0x00]].contains { data.starts(with: $0) }
  }

  private static func fromUTF16(_ bytes: [UInt8]) throws -> [UInt8] {
    let isBig = bytes[0] == 0xFE || bytes[0] == 0x00
    var units: [UInt16] = []
    units.reserveCapacity(bytes.count / 2)
    for index in stride(from: 0, to: bytes.count - 1, by: 2) {
      let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      units.append(isBig ? first << 8 | second : second << 8 | first)
    }
    if units.first == 0xFEFF { units.removeFirst() }
    guard bytes.count.isMultiple(of: 2), let text = String(validating: units, as: UTF16.self) else {
      throw PropertyListError(.damaged, "The file begins as UTF-16, but isn't valid UTF-16: it was cut off or altered")
    }
    return Array(text.utf8)
  }

  /// Returns the encoding in the XML declaration, in lower case; nil if none is declared.
  private static func declaredEncoding(_ bytes: [UInt8]) -> String? {
    guard let start = bytes.firstIndex(where: { !isSpace($0) }), bytes[start...].starts(with: "<?xml".utf8),
      let end = bytes[start...].firstIndex(of: UInt8(ascii: ">"))
    else { return nil }
    let declaration = String(decoding: bytes[start..<end], as: UTF8.self)
    return (declaration.firstMatch(of: /encoding\s*=\s*["']([^"']{0,40})["']/)?.1).map { $0.lowercased() }
  }
}
