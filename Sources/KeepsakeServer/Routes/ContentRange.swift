#if Cloud
import HTTPTypes

/// The bytes of a whole that a part contains, as in `Content-Range`: `bytes 0-1048575/9000000`.
struct ContentRange: Hashable, Sendable {
  var first: Int
  /// The last byte, inclusive.
  var last: Int
  var total: Int

  var count: Int { last - first + 1 }

  /// Reads the header of a part. Throws an `APIError` that states what is wrong.
  init(_ text: String) throws {
    let words = text.split(separator: " ", maxSplits: 1)
    let halves =
      words.count == 2 && words[0] == "bytes" ? words[1].split(separator: "/", omittingEmptySubsequences: false) : []
    guard halves.count == 2, let total = Self.number(halves[1]), let (first, last) = Self.bounds(halves[0]), let last
    else {
      throw APIError(.badRequest, .badRange, "A part needs a Content-Range such as \"bytes 0-1048575/9000000\".")
    }
    guard total <= ServerLimits.contentBytes else {
      throw APIError(
        .contentTooLarge, .tooLarge,
        "A content can have at most \(ServerLimits.contentBytes) bytes; this one has \(total).")
    }
    guard first <= last, last < total else {
      throw APIError(
        .rangeNotSatisfiable, .badRange, "Bytes \(first) to \(last) are outside of the \(total) bytes in all.")
    }
    (self.first, self.last, self.total) = (first, last, total)
  }

  /// Returns the bytes that a `Range` header requests of a content with `total` bytes.
  ///
  /// Nil for a request that this server doesn't support (several ranges, a range counted from the end): the whole
  /// content is then sent, as HTTP prescribes. Throws an `APIError` if there are no such bytes.
  static func wanted(_ text: String, of total: Int) throws -> Self? {
    guard text.hasPrefix("bytes="), let (first, last) = bounds(text.dropFirst(6)), first <= last ?? .max else {
      return nil
    }
    guard first < total else {
      throw APIError(
        .rangeNotSatisfiable, .badRange, "The range begins at byte \(first), but this content has only \(total) bytes.")
    }
    return Self(first: first, last: min(last ?? .max, total - 1), total: total)
  }

  private init(first: Int, last: Int, total: Int) {
    (self.first, self.last, self.total) = (first, last, total)
  }

  /// `5-9`, or `5-` without an end.
  private static func bounds(_ text: Substring) -> (first: Int, last: Int?)? {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let first = number(parts[0]) else { return nil }
    if parts[1].isEmpty { return (first, nil) }
    guard let last = number(parts[1]) else { return nil }
    return (first, last)
  }

  /// Accepts only digits: Swift would read a sign, too.
  private static func number(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      return nil
    }
    return Int(text)
  }
}
#endif
