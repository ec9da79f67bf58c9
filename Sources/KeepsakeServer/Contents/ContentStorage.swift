#if Cloud
import Crypto
import Foundation
import KeepsakeReplication

/// Keeps the bytes of large contents. What is known of them, and which are still needed, is in the database.
///
/// A key is put once, and read only after that; any number of servers do so at a time.
protocol ContentStorage: Sendable {
  /// What the rows of contents here call it. Stays the same wherever it is reached.
  var name: String { get }
  /// Stores the bytes of a file, which stays; durable when this returns. After an error they may be here or not.
  func put(_ file: URL, as key: ContentKey) async throws
  /// Returns how many bytes are here; nil for none.
  func size(of key: ContentKey) async throws -> Int?
  /// Returns bytes, all that were asked for; nil if they aren't here.
  func bytes(_ range: Range<Int>, of key: ContentKey) async throws -> Data?
  /// Removes the bytes, if they are here.
  func delete(_ key: ContentKey) async throws
  /// Returns a page of what is here, in the order of the keys' texts. What Keepsake didn't put isn't listed.
  ///
  /// - Parameters:
  ///   - prefix: Of the keys' texts.
  ///   - place: Where the page before ended; nil for the first one.
  func list(_ prefix: String, after place: String?, limit: Int) async throws -> ContentPage
  /// Removes what was left of bytes that were never put as a whole, if it was written before this, in milliseconds
  /// since 1970.
  func tidy(before milliseconds: Int64) async throws
  func shutDown() async throws
}

extension ContentStorage {
  func tidy(before milliseconds: Int64) async throws {}
  func shutDown() async throws {}
}

/// A large content's key: never used again for other bytes.
struct ContentKey: Hashable, Sendable {
  var container: ContainerID
  /// Begins with the container; has small letters, digits and hyphens.
  var name: String

  private static let maximumLength = 200

  /// - Throws: `ContentStorageError` with `badName` for a name that nobody here makes.
  init(_ name: String, of container: ContainerID) throws {
    guard Self.isName(name), name.hasPrefix("\(container)-") else {
      throw ContentStorageError(.badName, "A large content has a name that can't be its own.")
    }
    (self.container, self.name) = (container, name)
  }

  /// Reads a key's text; nil if it is none.
  init?(text: some StringProtocol) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, Self.isName(parts[2]), let end = parts[2].firstIndex(of: "-"),
      let container = ContainerID(String(parts[2][..<end]))
    else { return nil }
    (self.container, name) = (container, String(parts[2]))
    guard self.text == text else { return nil }
  }

  /// Where the bytes are, in folders and buckets: in one of 65,536 folders, so that none has too many.
  var text: String {
    let digits = "\(ContentHash(of: Data(name.utf8)))"
    return "\(digits.prefix(2))/\(digits.dropFirst(2).prefix(2))/\(name)"
  }

  private static func isName(_ text: some StringProtocol) -> Bool {
    (1...maximumLength).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"): true
        default: false
        }
      }
  }
}

/// A page of what a storage of contents has.
struct ContentPage: Sendable {
  struct Entry: Hashable, Sendable {
    var key: ContentKey
    /// Since 1970.
    var storedMilliseconds: Int64
  }
  var entries: [Entry] = []
  /// Where the next page begins; nil after the last one.
  var next: String?
}

/// Why large contents can't be stored or read.
struct ContentStorageError: Error, CustomStringConvertible {
  enum Code: String, Sendable {
    /// It doesn't answer, or not in time, or breaks off.
    case unreachable
    /// It is overloaded, or fails for now.
    case busy
    /// It doesn't let this server do that.
    case refused
    /// The bucket or the folder isn't there: nothing can be said about what is in it.
    case notThere
    /// It answers what can't be, or has other bytes than were put.
    case damaged
    /// A name or a file that can't be put.
    case badName
  }
  var code: Code
  var message: String
  var cause: (any Error)?

  init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    (self.code, self.message, self.cause) = (code, message, cause)
  }

  /// Whether the same may succeed a moment later.
  var isPassing: Bool { code == .unreachable || code == .busy || code == .notThere }

  var description: String { cause.map { "\(message) (\(ErrorReason.text($0)))" } ?? message }
}

/// A file whose bytes are put.
enum ContentFile {
  /// Returns how many bytes it has.
  ///
  /// - Throws: `ContentStorageError` with `badName` for one without any.
  static func size(_ file: URL) throws -> Int {
    guard let stamp = FileStamp(of: file) else {
      throw ServerError(.inputOutput, "\(file.path) can't be read.", cause: PrivateFile.systemError())
    }
    guard stamp.size > 0 else { throw ContentStorageError(.badName, "A large content can't be empty.") }
    return Int(stamp.size)
  }

  /// Calls `body` with its bytes, in pieces. Blocks.
  static func each(_ file: URL, piece: Int = ContentParts.partBytes, _ body: (Data) throws -> Void) throws {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }  // Only read from: closing can lose nothing.
    while let bytes = try handle.read(upToCount: piece), !bytes.isEmpty { try body(bytes) }
  }
}
#endif
