import Foundation
import KeepsakePlatform
import KeepsakeReplication

/// Distinguishes a changed file from an unchanged one without opening it. No program can set the time of the inode's
/// last change.
struct FolderSignature: Hashable, Sendable {
  var size: Int64
  var modifiedMilliseconds: Int64
  var changedNanoseconds: Int64
  var inode: UInt64

  var changedMilliseconds: Int64 { changedNanoseconds / 1_000_000 }

  init(_ status: FileStatus) {
    size = status.size
    // Wraps for times some centuries away, because these numbers only have to differ.
    modifiedMilliseconds = status.modified.seconds &* 1000 &+ status.modified.fraction / 1_000_000
    changedNanoseconds = status.changed.nanoseconds
    inode = status.inode
  }
}

/// What is at a path of a shared folder.
enum FolderItem {
  case file(FolderSignature)
  /// Something that exists for other devices, and that isn't on this one at present.
  case arriving
  /// Whatever is in a folder whose names aren't on this device at present. They have been asked for.
  case unlisted
  case folder
  /// A link, a pipe, a device.
  case other
}

/// How the files of a shared folder are reached: by the system's calls alone, or as those of iCloud.
///
/// Anybody may put anything into the folder: only plain files are read, links aren't followed, and no more is read than
/// allowed. Every call blocks.
protocol FolderAccess: Sendable {
  /// Returns what is at a path; nil if there is nothing.
  ///
  /// - Parameter known: What was read has this signature: whether its bytes are still here doesn't matter.
  func item(at path: String, known: FolderSignature?) throws(TransportFailure) -> FolderItem?

  /// Returns the names in a folder, sorted, without those that aren't UTF-8, because ours always are. Those of arriving
  /// files are among them. Nil if there is no folder.
  ///
  /// - Throws: `stillArriving` if the names aren't on this device. They have been asked for.
  func names(in folder: String) throws(TransportFailure) -> [String]?

  /// Returns the bytes of a plain file, or the first `limit` of them if `isPrefix`; nil if there is none here, or if it
  /// is larger than allowed.
  ///
  /// - Throws: `stillArriving` if it isn't on this device. It has been asked for.
  func read(_ path: String, limit: Int, isPrefix: Bool) throws(TransportFailure) -> Data?

  /// Creates a folder whose parent exists, durably; it may exist already.
  func makeFolder(_ path: String) throws

  /// Replaces a file durably: under its name are either all of the old bytes or all of the new ones.
  func write(_ bytes: Data, to path: String) throws

  /// Removes a file. One that is gone already is fine.
  func remove(_ path: String) throws(TransportFailure)

  /// Asks for what is arriving. Returns at once, and may be repeated.
  func fetch(_ path: String)
}

extension FolderAccess {
  func item(at path: String) throws(TransportFailure) -> FolderItem? { try item(at: path, known: nil) }

  /// Tells files apart and tells changes; nil if there is no plain file here.
  func signature(of path: String) throws(TransportFailure) -> FolderSignature? {
    if case .file(let signature)? = try item(at: path) { signature } else { nil }
  }

  func read(_ path: String, limit: Int) throws(TransportFailure) -> Data? {
    try read(path, limit: limit, isPrefix: false)
  }
}
