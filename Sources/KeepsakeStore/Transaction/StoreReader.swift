package import Foundation
import GRDB
package import KeepsakeReplication

/// A store opened only for reading. It takes no lock, mints no writer and changes nothing, so a game may have the store
/// open.
package final class StoreReader: Sendable {
  /// A content as it is stored, without its bytes.
  package struct ContentSummary: Hashable, Sendable {
    package var hash: ContentHash
    /// Length of the plain bytes.
    package var length: Int
    package var base: ContentHash?
    /// The number of bases down to a full frame.
    package var depth: Int
    /// Length of the frame in bytes.
    package var encodedBytes: Int
  }

  /// The kind of the store's seal.
  package let seal: Seal.Kind
  /// Whether signatures are checked. A tool without the secret reads what is signed without checking it.
  package let checksSeal: Bool

  private let queue: DatabaseQueue
  private let context: StoreContext

  /// Opens the store whose folder, or whose database, is at `url`.
  ///
  /// Without the secret, everything in a signed store can be read, but only the unencrypted parts of a sealed one.
  /// Calls that need more throw `wrongSecret`.
  ///
  /// SQLite may create its own empty files beside a database that isn't open anywhere, so if they don't exist, the
  /// folder must be writable.
  ///
  /// - Throws: `StoreError`: `missing` if nothing is there, `newerFormat`, `damaged`, `misuse` if it isn't a store or
  ///   has an older format, `wrongSecret` if the secret is a different one.
  package static func open(at url: URL, seal request: SealRequest? = nil) throws -> StoreReader {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
      throw StoreError(.missing, "there is no file or folder at \(url.path)")
    }
    let file = isFolder.boolValue ? url.appendingPathComponent(Store.databaseName) : url
    guard FileManager.default.fileExists(atPath: file.path) else {
      throw StoreError(.missing, "the folder \(url.path) contains no store")
    }
    try Schema.checkHeader(of: file)
    return try StoreError.translating("opening the store for reading") {
      var configuration = Configuration()
      configuration.readonly = true
      configuration.label = "keepsake.reader"
      // A writer that checkpoints locks the file only for moments.
      configuration.busyMode = .timeout(5)
      let queue = try DatabaseQueue(path: file.path, configuration: configuration)
      let application = try queue.read { try Int32.fetchOne($0, sql: "PRAGMA application_id") }
      guard application == Schema.applicationID else {
        throw StoreError(.misuse, "the database at \(file.path) is one of another program, and not a Keepsake store")
      }
      try queue.read { try Schema.requireCurrent($0, at: file) }
      let folder = file.deletingLastPathComponent()
      let seal = try queue.read { try SealGate.seal(of: $0, request, folder: folder) }
      return StoreReader(queue: queue, seal: seal)
    }
  }

  private init(queue: DatabaseQueue, seal: StoreSeal) {
    self.queue = queue
    context = StoreContext(seal: seal)
    self.seal = seal.kind
    checksSeal = !seal.keys.isEmpty
  }

  /// Returns what is wrong with the database: its structure, its schema, the checksum of every row, and derived rows.
  /// Empty if nothing is. Reads the whole database, but doesn't decode contents.
  package func problems() throws -> [String] {
    try StoreError.translating("checking the database") {
      try queue.read { try StoreAudit.run(on: StoreTransaction($0, in: context), whole: true).all }
    }
  }

  /// How saves that leave this store as files are sealed. Without the secret of a sealed store, nothing can be sealed
  /// with it.
  package var fileSeal: FileSeal { context.seal.files }

  /// Runs `body` on a snapshot of the store; everything read within one call is consistent.
  package func read<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value {
    try StoreError.translating("reading") {
      try queue.read { database in try body(StoreTransaction(database, in: context)) }
    }
  }
}

extension StoreTransaction {
  /// Returns how many rows that failed verification are kept in quarantine.
  package func quarantinedCount() throws -> Int { try Int.fetchOne(statement("SELECT COUNT(*) FROM quarantine")) ?? 0 }

  /// Returns what is stored of every content, sorted by hash.
  package func contentSummaries() throws -> [StoreReader.ContentSummary] {
    let rows = try Row.fetchAll(
      statement("SELECT hash, length, base, LENGTH(bytes) AS encoded FROM content ORDER BY hash"))
    var summaries = try rows.map { row in
      let base: Data? = try row.checkedOptional("base")
      guard let hash = ContentHash(bytes: try row.checked("hash")) else {
        throw StoreError(.damaged, "a content of the store has an invalid hash")
      }
      return StoreReader.ContentSummary(
        hash: hash, length: try row.checked("length"), base: base.flatMap { ContentHash(bytes: $0) }, depth: 0,
        encodedBytes: try row.checked("encoded"))
    }
    let bases = Dictionary(summaries.map { ($0.hash, $0.base) }) { first, _ in first }
    for index in summaries.indices {
      var next = summaries[index].base
      while let base = next, summaries[index].depth <= DecodingCost.maximumDepth {
        summaries[index].depth += 1
        next = bases[base] ?? nil
      }
    }
    return summaries
  }
}
