import Foundation
import KeepsakeReplication

/// Where everything stands in a folder that is a cloud.
///
///     keepsake.json                 which folder this is
///     state/<sha256>                segments: groups of cells and versions, as exchanges took them
///     contents/<aa>/<hash>          contents, under the first two digits of their hash
///
/// Nothing is ever written again under the same name, so a program that carries the folder from device to device has nothing to conflict
/// about. All names are lowercase hexadecimal digits, which no file system spells otherwise.
struct FolderLayout: Hashable, Sendable {
  let root: String

  init(_ url: URL) {
    let path = url.standardizedFileURL.path
    root = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
  }

  var identity: String { root + "/" + Self.identityName }
  var state: String { root + "/state" }
  var contents: String { root + "/contents" }

  func segment(_ hash: SegmentHash) -> String { "\(state)/\(hash)" }
  func contentFolder(_ hash: ContentHash) -> String { "\(contents)/\(hash.description.prefix(2))" }
  func content(_ hash: ContentHash) -> String { "\(contentFolder(hash))/\(hash)" }

  static let identityName = "keepsake.json"

  /// Whether a file may hold a folder's identity: the name itself, and what programs make of it when they find two of them
  /// ("keepsake (conflicted copy).json", "keepsake.sync-conflict-1.json", "Keepsake 2.json").
  static func isIdentity(_ name: String) -> Bool {
    let name = name.lowercased()
    return name.hasPrefix("keepsake") && name.hasSuffix(".json")
  }
}

/// Names a segment: the SHA-256 of its file's bytes.
typealias SegmentHash = ContentHash

/// When a folder is tidied up, and how often it is looked at.
package struct FolderOptions: Hashable, Sendable {
  /// Segments of one device since its last snapshot, beyond which it writes the next: an opening reads all that is there.
  package var segmentsBeforeSnapshot = 256
  /// What a snapshot replaces goes after this time, though nobody else has said that they have the snapshot: a folder of one device has
  /// nobody else, and others that are away for longer find all of it in the snapshot.
  package var snapshotMilliseconds: Int64 = 7 * 86_400_000
  /// A content that nothing known here needs stays for this time: what needs it may be on its way.
  package var contentMilliseconds: Int64 = 30 * 86_400_000
  /// How often names, sizes and dates are looked at.
  package var lookMilliseconds: Int64 = 1_000
  /// How often lost contents are put again, and what is replaced is removed.
  package var tidyMilliseconds: Int64 = 60_000

  package init() {}
}

/// How much is taken from a folder, each with its reason.
enum FolderLimits {
  /// Names in one folder that are listed: beyond that it is something else's folder, and looking at it each second would hold up a device.
  static let entries = 100_000
  /// Two identifiers and a checksum.
  static let identityBytes = 4 << 10
  /// Files that may be identities; a folder has one, and a few copies after an accident.
  static let identities = 64
  /// A segment: an exchange is below 4 MiB, and a snapshot of ten thousand saves about 8.
  static let segmentBytes = 32 << 20
  /// Segments that are read and can't be applied: a player's whole state is a few megabytes, and a device has to hold them.
  static let waitingBytes = 256 << 20
  /// Segments of others that one segment may say it has seen; the next one says the rest.
  static let seen = 256
  /// Segments that a snapshot may name as replaced.
  static let replaced = 65_536
  /// Of those, what is carried on from earlier snapshots, for devices that were away and go on from a segment long gone.
  static let inherited = 4_096
  /// The line at the head of a content's file: two hashes, a checksum and two numbers.
  static let contentHeadBytes = 512
  /// Bases that are followed for one content, as the engine follows them.
  static let contentChain = 256
  /// What a file left behind by a killed process is removed after.
  static let partialMilliseconds: Int64 = 86_400_000
}
