import Crypto
import Foundation
import GRDB

/// The unencrypted description of a store's seal: a row among its facts, and a copy in a file beside the database,
/// because without the salt nothing that is encrypted could ever be read again.
struct SealHeader: Codable, Hashable, Sendable {
  static let factName = "seal"
  /// The copy's name in the store's folder.
  static let fileName = "store.seal"
  private static let maximumFileBytes = 16 * 1024
  private static let currentFormat = 1
  private static let place = "fact \(factName)"

  var format = currentFormat
  var kind: Seal.Kind
  var salt: Data
  // For tools and error messages. The keys are bound to what the game states.
  var game: String
  var profile: String
  var hasPlayer: Bool
  /// The id of the key that seals what is written.
  var key: Data
  /// Ids of the keys that sealed what hasn't been sealed again yet. If empty, no other key is accepted.
  var earlierKeys: [Data] = []
  /// Whether the plain bytes that were in the file before it was encrypted have been overwritten.
  var isScrubbed: Bool
  /// HMAC over all of the above.
  var proof = Data()

  init(kind: Seal.Kind, salt: Data, owner: SealOwner, hasPlayer: Bool, key: SealKey) {
    self.kind = kind
    self.salt = salt
    (game, profile) = (owner.game, owner.profile)
    self.hasPlayer = hasPlayer
    self.key = key.id
    isScrubbed = true
  }

  var owner: SealOwner { SealOwner(game: game, profile: profile) }

  /// Returns whether the header was written, as it is, by the holder of this key.
  func isProven(by key: SealKey) throws -> Bool {
    guard self.key == key.id else { return false }
    return HMAC<SHA256>.isValidAuthenticationCode(proof, authenticating: try provenBytes(), using: key.header)
  }

  mutating func prove(with key: SealKey) throws {
    self.key = key.id
    proof = Data(HMAC<SHA256>.authenticationCode(for: try provenBytes(), using: key.header))
  }

  private func provenBytes() throws -> Data {
    var bare = self
    bare.proof = Data()
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(bare)
  }

  // MARK: Keeping

  /// Returns the header of the store in `folder`; nil if it isn't sealed. Only reads.
  ///
  /// If the row is missing or damaged, the copy is used, unless the store is empty and so starts over.
  static func find(in database: Database, folder: URL) throws -> SealHeader? {
    guard try database.tableExists("fact") else { return nil }
    var damage: (any Error)?
    do {
      if let header = try read(from: database) { return header }
    } catch let error as StoreError where error.code == .damaged {
      damage = error
    }
    if let copy = try readCopy(in: folder), try !SealedTable.areEmpty(in: database) { return copy }
    if let damage { throw damage }
    return nil
  }

  /// Returns every header of the store that can be found without its database, the likeliest first: in the database's
  /// pages and its log, beside it, in its backups. Only reads.
  static func findAnywhere(_ files: StoreFiles) throws -> [SealHeader] {
    var found: [SealHeader] = []
    let raw = try RawFile(files.database)
    let log = try WriteAheadLog.read(files.log, defaultPageSize: PageScanner.pageSize(of: raw))
    // With the tables that have long rows, too: pages of which it is known that such a row continues there aren't
    // searched byte by byte.
    let shapes = try TableShape.all()
    try PageScanner(database: raw, log: log, shapes: shapes).scan { row in
      if row.table == "fact", row.text("name") == factName,
        let header = try readable({ try row.data("body").map(decode) })
      {
        found.append(header)
      }
    }
    if let copy = try readCopy(in: files.folder) { found.append(copy) }
    for backup in files.presentBackups {
      try PageScanner(database: RawFile(backup), log: .none, shapes: shapes).scan { row in
        if row.table == "fact", row.text("name") == factName,
          let header = try readable({ try row.data("body").map(decode) })
        {
          found.append(header)
        }
      }
    }
    return found
  }

  private static func readable(_ body: () throws -> SealHeader?) throws -> SealHeader? {
    do {
      return try body()
    } catch let error as StoreError where error.code == .damaged {
      return nil
    }
  }

  /// Returns whether the row in the database, if there is one, is what was written.
  static func isSound(in database: Database) throws -> Bool {
    guard try database.tableExists("fact") else { return true }
    do {
      _ = try read(from: database)
      return true
    } catch let error as StoreError where error.code == .damaged {
      return false
    }
  }

  private static func read(from database: Database) throws -> SealHeader? {
    let row = try Row.fetchOne(database, sql: "SELECT body FROM fact WHERE name = ?", arguments: [factName])
    guard let row else { return nil }
    return try decode(try row.checked("body"))
  }

  /// Returns nil if there is no readable copy: the row decides then.
  static func readCopy(in folder: URL) throws -> SealHeader? {
    do {
      guard let body = try AtomicFile.read(file(in: folder), maximumBytes: maximumFileBytes) else { return nil }
      return try decode(body)
    } catch let error as StoreError where error.code == .damaged || error.code == .tooLarge {
      return nil
    }
  }

  private static func decode(_ body: Data) throws -> SealHeader {
    let header = try RowCodec(seal: .none).decode(SealHeader.self, from: body, place: place)
    guard header.format <= currentFormat else {
      throw StoreError(.newerFormat, "the store's seal has format \(header.format): update the game")
    }
    return header
  }

  /// Writes the row if it differs.
  func write(to database: Database) throws {
    do {
      guard try Self.read(from: database) != self else { return }
    } catch let error as StoreError where error.code == .damaged {
      // Overwrite it: the verified header came from the copy.
    }
    try database.execute(
      sql: "INSERT OR REPLACE INTO fact (name, body) VALUES (?, ?)", arguments: [Self.factName, body()])
  }

  /// Updates the copy; costs only a read if it is current. Written after the row, so a crash in between leaves the row
  /// ahead.
  func writeCopy(in folder: URL) throws {
    guard try Self.readCopy(in: folder) != self else { return }
    try AtomicFile.write(body(), to: Self.file(in: folder))
  }

  private func body() throws -> Data { try RowCodec(seal: .none).encode(self, place: Self.place) }

  private static func file(in folder: URL) -> URL { folder.appendingPathComponent(fileName) }
}
