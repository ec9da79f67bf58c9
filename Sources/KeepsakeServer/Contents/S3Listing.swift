#if Cloud
import Foundation

/// What S3 answers in XML: a page of a bucket (ListObjectsV2), or why it refuses.
struct S3Listing: Hashable, Sendable {
  struct Object: Hashable, Sendable {
    var key: String
    /// Since 1970.
    var storedMilliseconds: Int64
  }
  var objects: [Object] = []
  /// Whether there are more after these.
  var isTruncated = false

  struct Unreadable: Error, CustomStringConvertible {
    var description: String
  }

  /// - Throws: `Unreadable`.
  init(_ bytes: Data) throws {
    var reader = try XMLReader(bytes)
    var (path, key, stored): ([String], String?, Int64?) = ([], nil, nil)
    var saysIfTruncated = false
    while let event = try reader.next() {
      switch event {
      case .start(let name): path.append(name)
      case .text(let text):
        switch path.dropFirst() {
        case ["Contents", "Key"]: key = text
        case ["Contents", "LastModified"]: stored = try Self.milliseconds(text)
        case ["IsTruncated"]:
          guard text == "true" || text == "false" else {
            throw Unreadable(description: "IsTruncated is no truth value")
          }
          (isTruncated, saysIfTruncated) = (text == "true", true)
        default: break
        }
      case .end:
        if path.count == 2, path[1] == "Contents" {
          guard let key, let stored else { throw Unreadable(description: "an object has no key or no time") }
          objects.append(Object(key: key, storedMilliseconds: stored))
        }
        path.removeLast()
        if path.count == 1 { (key, stored) = (nil, nil) }
      }
      guard path.first ?? "ListBucketResult" == "ListBucketResult" else {
        throw Unreadable(description: "it is no list of a bucket")
      }
    }
    guard saysIfTruncated else { throw Unreadable(description: "IsTruncated is missing") }
  }

  private static func milliseconds(_ text: String) throws -> Int64 {
    // With a fraction or without.
    var whole = text
    if let dot = text.firstIndex(of: "."), text.hasSuffix("Z") { whole = text[..<dot] + "Z" }
    do {
      return Int64(try Date.ISO8601FormatStyle().parse(whole).timeIntervalSince1970 * 1000)
    } catch {
      throw Unreadable(description: "a time can't be read")
    }
  }

  /// Returns the code of an error, such as `NoSuchKey`; nil if there is none.
  static func errorCode(_ bytes: Data) -> String? {
    do {
      var reader = try XMLReader(bytes)
      var path: [String] = []
      while let event = try reader.next() {
        switch event {
        case .start(let name): path.append(name)
        case .text(let text):
          guard path == ["Error", "Code"] else { break }
          let isWord =
            text.utf8.count <= 64 && text.unicodeScalars.allSatisfy { $0.isASCII && $0.properties.isAlphabetic }
          return isWord ? text : nil
        case .end: path.removeLast()
        }
      }
    } catch {
      // Whatever else answers, such as a proxy, has none.
    }
    return nil
  }
}

/// Reads the XML that S3 writes: elements and texts. Refuses declarations of types, and with them all entities but the
/// five that every document has.
private struct XMLReader {
  enum Event {
    case start(String)
    case text(String)
    case end
  }
  private var rest: Substring
  private var open: [String] = []
  /// Set behind an element without anything in it.
  private var isEmpty = false
  private var hasRoot = false

  init(_ bytes: Data) throws {
    guard let text = String(data: bytes, encoding: .utf8) else { throw Self.unreadable("it is no UTF-8") }
    rest = text[...]
    if rest.hasPrefix("\u{FEFF}") { rest.removeFirst() }
    guard rest.hasPrefix("<?xml") else { return }
    guard let end = rest.firstRange(of: "?>") else { throw Self.unreadable("it breaks off") }
    rest = rest[end.upperBound...]
  }

  /// Returns nil at the end.
  mutating func next() throws -> Event? {
    if isEmpty {
      isEmpty = false
      open.removeLast()
      return .end
    }
    while true {
      guard let bracket = rest.firstIndex(of: "<") else {
        guard open.isEmpty, hasRoot, rest.allSatisfy(\.isWhitespace) else { throw Self.unreadable("it breaks off") }
        return nil
      }
      let text = rest[..<bracket]
      guard let end = rest[bracket...].firstIndex(of: ">") else { throw Self.unreadable("it breaks off") }
      let isEnd = rest[rest.index(after: bracket)...].first == "/"
      if !text.isEmpty {
        rest = rest[bracket...]
        // Between elements, or the text of one.
        if isEnd || !text.allSatisfy(\.isWhitespace) {
          guard !open.isEmpty else { throw Self.unreadable("there is text beside the root") }
          return .text(try Self.decoded(text))
        }
      }
      var tag = rest[rest.index(after: bracket)..<end]
      rest = rest[rest.index(after: end)...]
      if isEnd {
        let name = tag.dropFirst().trimmingCharacters(in: .whitespaces)
        guard open.popLast() == name else { throw Self.unreadable("an element ends that didn't begin") }
        return .end
      }
      if tag.hasSuffix("/") {
        isEmpty = true
        tag.removeLast()
      }
      // What stands behind the name are attributes, such as the namespace.
      let name = String(tag.prefix { !$0.isWhitespace })
      guard name.first?.isLetter == true, !name.contains(where: { "!?<&\"'".contains($0) }), open.count < 16,
        !(hasRoot && open.isEmpty)
      else { throw Self.unreadable("there is something else than an element") }
      hasRoot = true
      open.append(name)
      return .start(name)
    }
  }

  private static func decoded(_ text: Substring) throws -> String {
    var (result, rest) = ("", text)
    while let mark = rest.firstIndex(of: "&") {
      result += rest[..<mark]
      guard let end = rest[mark...].firstIndex(of: ";") else { throw unreadable("an entity doesn't end") }
      let name = rest[rest.index(after: mark)..<end]
      if let character = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"][String(name)] {
        result += character
      } else {
        let isHexadecimal = name.hasPrefix("#x")
        guard name.hasPrefix("#"),
          let scalar = UInt32(name.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10)
            .flatMap(Unicode.Scalar.init)
        else { throw unreadable("an entity is unknown") }
        result.unicodeScalars.append(scalar)
      }
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  private static func unreadable(_ what: String) -> S3Listing.Unreadable { S3Listing.Unreadable(description: what) }
}
#endif
