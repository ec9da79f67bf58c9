import Foundation
import GRDB

/// Looks for damage in the game's own tables before they are used.
///
/// Of these tables nobody but the game knows what they should hold, so there are no checksums to compare with: what shows is damage to the
/// structure of the file. A value that another one took the place of is not found.
enum RecordsAudit {
  struct Findings {
    /// Only a recovery helps.
    var damage: [String] = []
    /// An index disagrees with its table and can be made anew from it.
    var indexes: [String] = []

    var all: [String] { damage + indexes }
  }

  enum Extent {
    /// All of the file's structure where it has up to `StoreAudit.wholeCheckBytes`; of a larger one the description of the tables.
    case opening
    /// All of the file's structure, however large it is.
    case structure
    /// Indexes against their tables, too.
    case everything
  }

  /// Where there is more, nobody needs it.
  private static let maximumFindings = 20

  /// Costs about a tenth of a second for 64 MiB.
  static func run(on database: Database, _ extent: Extent) throws -> Findings {
    var findings = Findings()
    do {
      _ = try Row.fetchAll(database, sql: "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master")
      guard try extent != .opening || bytes(of: database) <= StoreAudit.wholeCheckBytes else { return findings }
      let check = extent == .everything ? "integrity_check" : "quick_check"
      for line in try String.fetchAll(database, sql: "PRAGMA \(check)(\(maximumFindings))") {
        let problem = line.replacing("*** in database main ***\n", with: "")
        guard isDamage(problem) else { continue }
        let isIndex = problem.contains("missing from index") || problem.hasPrefix("wrong # of entries in index")
        if isIndex { findings.indexes.append(problem) } else { findings.damage.append(problem) }
      }
    } catch let error as DatabaseError where error.isBrokenFile {
      findings.damage.append("the database can't be read: \(error.message ?? "damaged")")
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // The description names a function or a collation of the game's: what SQLite can't check without it is no damage.
    }
    return findings
  }

  private static func bytes(of database: Database) throws -> Int {
    let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
    let pageSize = try Int.fetchOne(database, sql: "PRAGMA page_size") ?? 0
    return pages.multipliedReportingOverflow(by: pageSize).partialValue
  }

  /// Rows that break the game's own rules for them are the game's affair: it may have changed a rule, or told SQLite to pass over them. So is an
  /// index of full-text search, which its own command makes anew.
  private static func isDamage(_ problem: String) -> Bool {
    problem != "ok" && !problem.hasPrefix("CHECK constraint failed") && !problem.contains(" value in ")
      && !problem.contains("inverted index")
  }
}

extension DatabaseError {
  /// The bytes of the file are to blame, whatever the statement was.
  var isBrokenFile: Bool { resultCode == .SQLITE_CORRUPT || resultCode == .SQLITE_NOTADB }
}
