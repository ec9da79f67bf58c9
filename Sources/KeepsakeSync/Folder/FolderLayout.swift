import Foundation
import KeepsakeReplication

/// The location of everything in a folder that is a cloud.
///
///     keepsake.json                 which folder this is; in iCloud:
///     containers/<container>        a container that devices in this folder belong to
///     state/<sha256>                segments: groups of cells and versions, as exchanges accepted them
///     contents/<aa>/<hash>          contents, under the first two digits of their hash
///
/// Nothing is ever written twice under the same name, so a program that syncs the folder between devices has no
/// conflicts. All names are lowercase hexadecimal digits, which every file system spells the same.
struct FolderLayout: Hashable, Sendable {
  let root: String

  init(_ url: URL) {
    let path = url.standardizedFileURL.path
    root = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
  }

  var identity: String { root + "/" + Self.identityName }
  var containers: String { root + "/containers" }
  var state: String { root + "/state" }
  var contents: String { root + "/contents" }

  func segment(_ hash: SegmentHash) -> String { "\(state)/\(hash)" }
  func contentFolder(_ hash: ContentHash) -> String { "\(contents)/\(hash.description.prefix(2))" }
  func content(_ hash: ContentHash) -> String { "\(contentFolder(hash))/\(hash)" }

  static let identityName = "keepsake.json"

  /// Returns whether a file may contain a folder's identity: the name itself, and the names that programs give to a
  /// second one ("keepsake (conflicted copy).json", "keepsake.sync-conflict-1.json", "Keepsake 2.json").
  static func isIdentity(_ name: String) -> Bool {
    let name = name.lowercased()
    return name.hasPrefix("keepsake") && name.hasSuffix(".json")
  }
}

/// Identifies a segment: the SHA-256 of its file's bytes.
typealias SegmentHash = ContentHash

/// When a folder is tidied up, and how often it is looked at.
package struct FolderOptions: Hashable, Sendable {
  /// The number of segments of one device since its last snapshot after which it writes the next: opening reads
  /// everything that is there.
  package var segmentsBeforeSnapshot = 256
  /// What a snapshot replaces is removed after this time, even if no other device has recorded that it has the
  /// snapshot: a folder of one device has no others, and devices that are away for longer find all of it in the
  /// snapshot.
  package var snapshotMilliseconds: Int64 = 7 * 86_400_000
  /// A content that nothing known here needs is kept for this time: what needs it may still arrive.
  package var contentMilliseconds: Int64 = 30 * 86_400_000
  /// How often names, sizes and dates are looked at.
  package var lookMilliseconds: Int64 = 1_000
  /// How long a device that has to start over waits for what is arriving, which may be all that it has to know: some
  /// of it may never come.
  package var arrivalMilliseconds: Int64 = 600_000
  /// How often lost contents are stored again, and what is replaced is removed.
  package var tidyMilliseconds: Int64 = 60_000

  package init() {}
}

/// How much is accepted from a folder, each with its reason.
enum FolderLimits {
  /// The most names that are listed in one folder: one with more belongs to something else, and looking at it each
  /// second would slow down a device.
  static let entries = 100_000
  /// Two identifiers and a checksum.
  static let identityBytes = 4 << 10
  /// The most files that may be identities; a folder has one, and a few copies after an accident.
  static let identities = 64
  /// A segment: an exchange is below 4 MiB, and a snapshot of ten thousand saves about 8.
  static let segmentBytes = 32 << 20
  /// Segments that are read and can't be applied: a player's whole state is a few megabytes, and a device has to hold
  /// them in memory.
  static let waitingBytes = 256 << 20
  /// The most segments of others that one segment may record as seen; the next one records the rest.
  static let seen = 256
  /// The most segments that a snapshot may name as replaced.
  static let replaced = 65_536
  /// How many of those are inherited from earlier snapshots, for devices that were away and continue from a segment
  /// long gone.
  static let inherited = 4_096
  /// The line at the beginning of a content's file: two hashes, a checksum and two numbers.
  static let contentHeadBytes = 512
  /// The most bases that are followed for one content, as in the engine.
  static let contentChain = 256
  /// How old a file left behind by a killed process has to be before it is removed.
  static let partialMilliseconds: Int64 = 86_400_000
}
