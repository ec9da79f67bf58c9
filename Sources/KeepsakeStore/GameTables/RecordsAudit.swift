import Foundation
import GRDB

/// Checks the game's own tables for damage before they are used.
///
/// Only the game knows what these tables should contain, so there are no checksums to compare with. Damage to the
/// structure of the file is detected; a value that was replaced by another one is not.
enum RecordsAudit {
  struct Findings {
    /// Only a recovery helps.
    var damage: [String] = []
    /// An index disagrees with its table, and can be rebuilt from it.
    var indexes: [String] = []

    var all: [String] { damage + indexes }

    fileprivate mutating func note(_ problem: String) {
      guard RecordsAudit.isDamage(problem) else { return }
      let isIndex =
        problem.contains("missing from index") || problem.contains("differ from index")
        || problem.hasPrefix("wrong # of entries in index")
      if isIndex { indexes.append(problem) } else { damage.append(problem) }
    }
  }

  enum Extent {
    /// Up to `StoreAudit.wholeCheckBytes`, the structure of the whole file, and up to `indexCheckBytes`, also the
    /// indexes against their tables. For a larger file, only the schema.
    case opening
    /// The structure of the whole file, however large it is.
    case structure
    /// Also the indexes against their tables.
    case everything
  }

  /// Up to this size, indexes are compared with their tables on each opening. That takes ten times as long as checking
  /// the structure: about a tenth of a second.
  static let indexCheckBytes = 4 << 20
  /// More findings than this help nobody.
  private static let maximumFindings = 20
  private static let structureHeading = "*** in database"

  /// Runs the checks. Costs about a tenth of a second for 64 MiB.
  ///
  /// - Parameter limit: The maximum number of findings; nil for as many as anybody would read.
  static func run(on database: Database, _ extent: Extent, limit: Int? = nil) throws -> Findings {
    var findings = Findings()
    do {
      _ = try Row.fetchAll(database, sql: "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master")
      let bytes = try bytes(of: database)
      guard extent != .opening || bytes <= StoreAudit.wholeCheckBytes else { return findings }
      let comparesIndexes = extent == .everything || extent == .opening && bytes <= indexCheckBytes
      let check = comparesIndexes ? "integrity_check" : "quick_check"
      let cursor = try String.fetchCursor(database, sql: "PRAGMA \(check)(\(limit ?? maximumFindings))")
      // Findings before an error are kept, too.
      while let text = try cursor.next() {
        // Findings about the structure come as one text.
        let isList = text.hasPrefix(structureHeading)
        for problem in isList ? text.split(separator: "\n").map(String.init) : [text] { findings.note(problem) }
      }
    } catch let error as DatabaseError where error.isBrokenFile {
      findings.damage.append("the database can't be read: \(error.message ?? "damaged")")
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // The schema uses a function or a collation of the game's: what SQLite can't check without it is not damage.
    }
    return findings
  }

  /// Returns a configuration for reading only. The schema may come from an untrusted source: what it calls while it is
  /// checked must do no harm and change nothing.
  static func configuration(_ label: String) -> Configuration {
    var configuration = Configuration()
    configuration.label = label
    configuration.readonly = true
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA trusted_schema = OFF") }
    return configuration
  }

  private static func bytes(of database: Database) throws -> Int {
    let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
    let pageSize = try Int.fetchOne(database, sql: "PRAGMA page_size") ?? 0
    return pages.multipliedReportingOverflow(by: pageSize).partialValue
  }

  /// Rows that violate the game's own constraints are the game's responsibility: it may have changed a constraint, or
  /// told SQLite to ignore it. The same is true of a full-text index, which has a command of its own to rebuild it.
  private static func isDamage(_ problem: String) -> Bool {
    problem != "ok" && !problem.hasPrefix(structureHeading) && !problem.hasPrefix("CHECK constraint failed")
      && !problem.contains(" value in ")
      && !problem.contains("inverted index")
  }
}

extension DatabaseError {
  /// Whether the bytes of the file caused the error, whatever the statement was.
  var isBrokenFile: Bool { resultCode == .SQLITE_CORRUPT || resultCode == .SQLITE_NOTADB }
}
