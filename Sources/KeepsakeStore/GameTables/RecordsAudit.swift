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

    fileprivate mutating func note(_ problem: String) {
      guard RecordsAudit.isDamage(problem) else { return }
      let isIndex =
        problem.contains("missing from index") || problem.contains("differ from index") || problem.hasPrefix("wrong # of entries in index")
      if isIndex { indexes.append(problem) } else { damage.append(problem) }
    }
  }

  enum Extent {
    /// All of the file's structure where it has up to `StoreAudit.wholeCheckBytes`, and up to `indexCheckBytes` the indexes against their
    /// tables; of a larger one the description of the tables.
    case opening
    /// All of the file's structure, however large it is.
    case structure
    /// Indexes against their tables, too.
    case everything
  }

  /// Up to this size indexes are compared with their tables at each opening, which takes ten times as long as the structure: about a tenth of a
  /// second.
  static let indexCheckBytes = 4 << 20
  /// Where there is more, nobody needs it.
  private static let maximumFindings = 20
  private static let structureHeading = "*** in database"

  /// Costs about a tenth of a second for 64 MiB.
  ///
  /// - Parameter limit: So many findings are enough; nil for those that anybody would read.
  static func run(on database: Database, _ extent: Extent, limit: Int? = nil) throws -> Findings {
    var findings = Findings()
    do {
      _ = try Row.fetchAll(database, sql: "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master")
      let bytes = try bytes(of: database)
      guard extent != .opening || bytes <= StoreAudit.wholeCheckBytes else { return findings }
      let comparesIndexes = extent == .everything || extent == .opening && bytes <= indexCheckBytes
      let check = comparesIndexes ? "integrity_check" : "quick_check"
      let cursor = try String.fetchCursor(database, sql: "PRAGMA \(check)(\(limit ?? maximumFindings))")
      // What comes before an error is worth knowing, too.
      while let text = try cursor.next() {
        // What is found in the structure comes as one text.
        let isList = text.hasPrefix(structureHeading)
        for problem in isList ? text.split(separator: "\n").map(String.init) : [text] { findings.note(problem) }
      }
    } catch let error as DatabaseError where error.isBrokenFile {
      findings.damage.append("the database can't be read: \(error.message ?? "damaged")")
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // The description names a function or a collation of the game's: what SQLite can't check without it is no damage.
    }
    return findings
  }

  /// A connection that only looks: what a description from who knows where calls while it is checked may do no harm, and change nothing.
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

  /// Rows that break the game's own rules for them are the game's affair: it may have changed a rule, or told SQLite to pass over them. So is an
  /// index of full-text search, which its own command makes anew.
  private static func isDamage(_ problem: String) -> Bool {
    problem != "ok" && !problem.hasPrefix(structureHeading) && !problem.hasPrefix("CHECK constraint failed")
      && !problem.contains(" value in ")
      && !problem.contains("inverted index")
  }
}

extension DatabaseError {
  /// The bytes of the file are to blame, whatever the statement was.
  var isBrokenFile: Bool { resultCode == .SQLITE_CORRUPT || resultCode == .SQLITE_NOTADB }
}
