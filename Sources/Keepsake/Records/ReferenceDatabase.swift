import Crypto
public import Foundation
public import GRDB
import GRDBSQLite

/// A read-only database that ships with the game: words, levels, creatures. Queries are GRDB's: a source file that has
/// some also imports `KeepsakeRecords`.
///
/// ```swift
/// let url = Bundle.main.url(forResource: "words", withExtension: "sqlite")!
/// let words = try ReferenceDatabase(at: url, sha256: "9f86d081...")
/// let isWord = try words.read { db in
///   try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM word WHERE text = ?)", arguments: [guess]) ?? false
/// }
/// ```
///
/// It is opened so that SQLite creates no files beside it and takes no locks: the folder may be read-only. Pass values
/// as `arguments`, never in the text of a statement. Safe to use from any thread, also inside another read; several
/// reads can run at the same time. The file must not change while it is open.
public final class ReferenceDatabase: Sendable {
  private static let chunkBytes = 1 << 20
  private static let magic = Data("SQLite format 3\0".utf8)

  /// The file's location.
  public let url: URL
  private let pool: DatabasePool

  /// Checks a file's hash and opens it.
  ///
  /// Reads the whole file at each call, which takes about a second for each GB: this detects, before play, damage that
  /// the file's size and date don't show. Open a large file on another thread.
  ///
  /// - Parameters:
  ///   - url: The file. Create it with `PRAGMA journal_mode = DELETE`: a file with a write-ahead log beside it isn't
  ///     complete.
  ///   - sha256: The SHA-256 of the file as `sha256sum` prints it, 64 hexadecimal digits, computed when the game is
  ///     built.
  /// - Throws: `ReferenceError`.
  public init(at url: URL, sha256: String) throws {
    self.url = url
    let expected = sha256.lowercased()
    guard expected.utf8.count == 64, expected.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
      throw ReferenceError(.misuse, "the hash of \(url.lastPathComponent) has to be 64 hexadecimal digits")
    }
    let beginning = try Self.check(url, expected)
    guard beginning == Self.magic else {
      throw ReferenceError(.notADatabase, "the file \(url.path) is not a SQLite database")
    }
    try Self.refuseLog(beside: url)
    guard sqlite3_compileoption_used("USE_URI") != 0 else {
      throw ReferenceError(
        .unreadable,
        """
        this system's SQLite doesn't support URIs (SQLITE_USE_URI), so a database can't be opened as one that never \
        changes
        """)
    }
    var configuration = Configuration()
    configuration.label = "keepsake.reference"
    configuration.readonly = true
    do {
      pool = try DatabasePool(path: Self.immutable(url), configuration: configuration)
      // SQLite doesn't read the file until a statement needs it.
      _ = try pool.read { try Row.fetchAll($0, sql: "SELECT * FROM sqlite_master") }
    } catch let error as DatabaseError {
      throw Self.translated(error, url)
    }
  }

  /// Reads the database.
  ///
  /// - Parameter body: Reads the database.
  /// - Returns: The result of `body`.
  /// - Throws: `ReferenceError` for problems with the file; GRDB's `DatabaseError` for an invalid statement or one that
  ///   writes; any error that `body` throws.
  public func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    do {
      // The file never changes, so every read sees the same state. A read inside a read can therefore use the same
      // connection; GRDB would refuse to open another one.
      return try pool.unsafeReentrantRead(body)
    } catch let error as DatabaseError
      where [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_IOERR].contains(error.resultCode)
    {
      throw Self.translated(error, url)
    }
  }

  // MARK: Checks

  /// Reads the whole file and returns its first bytes. Throws if it doesn't have the expected hash.
  private static func check(_ url: URL, _ expected: String) throws -> Data {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
      throw ReferenceError(.missing, "there is no file \(url.path)")
    }
    guard !isFolder.boolValue else { throw ReferenceError(.notADatabase, "\(url.path) is a folder") }
    // Reading a pipe would block, and a device may never end.
    let type: FileAttributeType?
    do {
      type =
        try FileManager.default.attributesOfItem(atPath: url.resolvingSymlinksInPath().path)[.type]
        as? FileAttributeType
    } catch {
      throw ReferenceError(.unreadable, "the file \(url.path) can't be examined", cause: error)
    }
    guard type == .typeRegular else {
      throw ReferenceError(.notADatabase, "\(url.path) is a pipe or a device, not a file")
    }
    var hash = SHA256()
    var beginning = Data()
    do {
      let file = try FileHandle(forReadingFrom: url)
      defer { try? file.close() }  // Only read from: closing can lose nothing.
      while let chunk = try file.read(upToCount: chunkBytes), !chunk.isEmpty {
        if beginning.count < magic.count { beginning.append(chunk.prefix(magic.count - beginning.count)) }
        hash.update(data: chunk)
      }
    } catch {
      throw ReferenceError(.unreadable, "the file \(url.path) can't be read", cause: error)
    }
    let digits = hash.finalize().map { byte in
      let text = String(byte, radix: 16)
      return byte < 16 ? "0" + text : text
    }
    let found = digits.joined()
    guard found == expected else {
      throw ReferenceError(
        .otherHash,
        """
        the file \(url.path) is not the one that the game was built with: its SHA-256 is \(found), it should be \
        \(expected); install the game again, or build it with the new hash
        """)
    }
    return beginning
  }

  /// Throws if there is a log beside the file: its contents aren't in the file, and weren't hashed.
  private static func refuseLog(beside url: URL) throws {
    for suffix in ["-wal", "-journal"] {
      let size: NSNumber?
      do {
        size = try FileManager.default.attributesOfItem(atPath: url.path + suffix)[.size] as? NSNumber
      } catch let error as CocoaError
        where [.fileNoSuchFile, .fileReadNoSuchFile, .fileReadInvalidFileName].contains(error.code)
      {
        // There is no log, or no file can have its name.
        continue
      } catch {
        throw ReferenceError(
          .unreadable, "whether a log is next to the file \(url.path) can't be determined", cause: error)
      }
      guard size?.int64Value == 0 else {
        throw ReferenceError(
          .misuse,
          """
          \(url.lastPathComponent)\(suffix) is next to \(url.path): its contents aren't in the file; close the \
          database properly before you ship it
          """)
      }
    }
  }

  /// SQLite's URI for a file that never changes. `URL` escapes percent signs, question marks and hashes in the path.
  private static func immutable(_ url: URL) -> String { URL(fileURLWithPath: url.path).absoluteString + "?immutable=1" }

  private static func translated(_ error: DatabaseError, _ url: URL) -> ReferenceError {
    switch error.resultCode {
    case .SQLITE_NOTADB: ReferenceError(.notADatabase, "the file \(url.path) is not a SQLite database", cause: error)
    case .SQLITE_CORRUPT:
      ReferenceError(
        .damaged, "the database \(url.path) is damaged: it was already damaged when its hash was computed", cause: error
      )
    default: ReferenceError(.unreadable, "the database \(url.path) can't be read", cause: error)
    }
  }
}
