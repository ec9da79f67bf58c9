import Foundation

/// Writes JSON without a general encoder, for values whose form is always the same: the bytes that `JSONEncoder` gives
/// with sorted keys and unescaped slashes, in a tenth of the time.
package struct PlainJSONWriter {
  package private(set) var bytes: [UInt8] = []

  package init(capacity: Int) { bytes.reserveCapacity(capacity) }

  package mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

  /// Appends a list of identifiers, which need no escapes.
  package mutating func append(_ identifiers: [some CustomStringConvertible]) {
    append("[")
    for (index, identifier) in identifiers.enumerated() {
      append(index == 0 ? "\"" : ",\"")
      append(identifier.description)
      append("\"")
    }
    append("]")
  }

  /// Appends a text in quotation marks. Returns false for one that an encoder escapes: what was written is of no use
  /// then.
  package mutating func string(_ text: String) -> Bool {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      guard PlainJSONReader.isPlain(byte) else { return false }
      bytes.append(byte)
    }
    bytes.append(UInt8(ascii: "\""))
    return true
  }
}

/// Reads what `PlainJSONWriter` writes, and nothing else: any other form is left to a decoder.
package struct PlainJSONReader {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  package var isAtEnd: Bool { position == bytes.count }

  /// Whether a byte of a text stands for itself in JSON.
  static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\") && byte != 0x7F
  }

  /// Takes these bytes, if they are next.
  package mutating func take(_ expected: StaticString) -> Bool {
    let count = expected.utf8CodeUnitCount
    guard let start = bytes.baseAddress, bytes.count - position >= count,
      memcmp(start + position, expected.utf8Start, count) == 0
    else { return false }
    position += count
    return true
  }

  /// Takes an integer; one that has no room is left to a decoder.
  package mutating func integer() -> Int64? {
    let isNegative = take("-")
    let start = position
    var value: Int64 = 0
    while position < bytes.count, case let digit = bytes[position] &- UInt8(ascii: "0"), digit < 10 {
      let (tens, isTooLarge) = value.multipliedReportingOverflow(by: 10)
      let (sum, isTooLargeNow) = tens.addingReportingOverflow(Int64(digit))
      guard !isTooLarge, !isTooLargeNow else { return nil }
      value = sum
      position += 1
    }
    guard position > start, position - start == 1 || bytes[start] != UInt8(ascii: "0") else { return nil }
    return isNegative ? -value : value
  }

  /// Takes a text without escapes, in quotation marks.
  package mutating func string() -> String? {
    guard take("\"") else { return nil }
    let start = position
    while position < bytes.count, Self.isPlain(bytes[position]) { position += 1 }
    let text = String(validating: bytes[start..<position], as: UTF8.self)
    return take("\"") ? text : nil
  }

  /// Takes an identifier; nil if the text isn't one.
  package mutating func identifier<Kind>(_ type: Identifier<Kind>.Type) -> Identifier<Kind>? {
    string().flatMap { Identifier<Kind>($0) }
  }

  package mutating func hash() -> ContentHash? { string().flatMap { ContentHash($0) } }

  package mutating func writer() -> WriterID? {
    string().flatMap { Hexadecimal.words(in: $0, count: 1) }.map { WriterID($0[0]) }
  }

  /// Takes a list in brackets.
  package mutating func list<Element>(_ element: (inout Self) -> Element?) -> [Element]? {
    guard take("[") else { return nil }
    var elements: [Element] = []
    if take("]") { return elements }
    repeat {
      guard let one = element(&self) else { return nil }
      elements.append(one)
    } while take(",")
    return take("]") ? elements : nil
  }
}
