#if Cloud
import Foundation

/// What is in the file of a backup: a tar archive of the data folder's files, and what shows that it is whole.
///
///     backup.json      what this is, the format's number, when it was begun
///     contents/NAME    each large content, and a few that the database didn't need any more
///     secret, ...      the folder's small files
///     cloud.sqlite     the database, marked as a backup
///     SHA256SUMS       the SHA-256 of every file before it, as sha256sum writes it
enum BackupLayout {
  static let about = "backup.json"
  static let sums = "SHA256SUMS"
  static let contentsPrefix = "contents/"
  static let format = 1

  /// The first file.
  struct About: Codable, Hashable {
    static let kind = "backup of a cloud"
    var keepsake = kind
    var format = BackupLayout.format
    /// When the backup was begun.
    var madeAtMilliseconds: Int64
  }

  /// Whether a backup may have a file of this path. A later version may have small files that this one doesn't know.
  static func allows(_ path: String) -> Bool {
    if path.hasPrefix(contentsPrefix) { return isContent(path.dropFirst(contentsPrefix.count)) }
    if path == DataFolder.databaseName { return true }
    let isPlain = path.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
    return isPlain && (1...64).contains(path.utf8.count) && !DataFolder.transientNames.contains(path)
  }

  /// Whether this can be the name of a content's file: a container, a hash and a number (`putContent`).
  static func isContent(_ name: Substring) -> Bool {
    (1...200).contains(name.utf8.count)
      && name.utf8.allSatisfy { (0x61...0x66).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
  }
}

/// What is in a backup.
package struct BackupSummary: Encodable, Hashable, Sendable {
  /// When it was begun: milliseconds since 1970. The database is of a later moment.
  package var madeAtMilliseconds: Int64
  /// The size of the whole file.
  package var fileBytes: Int64 = 0
  package var databaseBytes: Int64 = 0
  /// Large contents: their number and sizes.
  package var contents = 0
  package var contentBytes: Int64 = 0
  /// Large contents that the database needs, and that were lost before. `verify` doesn't look for them.
  package var lostContents = 0
}
#endif
