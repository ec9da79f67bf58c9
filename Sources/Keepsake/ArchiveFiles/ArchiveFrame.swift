package import Foundation
package import KeepsakeArchive
import KeepsakeStore

/// The zstd frame that may enclose an archive in a file: see docs/FORMAT.md.
package enum ArchiveFrame {
  /// Smaller archives aren't compressed: they fit into one block on most disks anyway.
  private static let smallestBytes = 4_096
  /// The fraction of the bytes that a frame has to save: one in this many.
  private static let smallestGain = 8

  /// Compresses an archive if `compression` asks for it. Throws `StoreError` if there isn't enough memory.
  static func sealed(_ archive: Data, _ compression: ArchiveCompression) throws -> Data {
    switch compression {
    case .none: return archive
    case .zstd(let level):
      let nearest = min(max(level, Int(Zstd.levels.lowerBound)), Int(Zstd.levels.upperBound))
      return try Zstd.compress(archive, level: Int32(nearest))
    case .automatic:
      guard archive.count >= smallestBytes else { return archive }
      let frame = try Zstd.compress(archive)
      return frame.count <= archive.count - archive.count / smallestGain ? frame : archive
    }
  }

  /// Whether bytes begin like a frame, possibly a truncated one.
  package static func isFrame(_ bytes: Data) -> Bool {
    !bytes.isEmpty && bytes.prefix(Zstd.frameMagic.count).elementsEqual(Zstd.frameMagic.prefix(bytes.count))
  }

  /// Whether bytes begin like an archive.
  package static func isArchive(_ bytes: Data) -> Bool { bytes.starts(with: Archive.magic) }

  /// Returns the archive in a file's bytes, which are either the archive or a frame around it. Doesn't check that it is
  /// an archive.
  ///
  /// Throws `ArchiveError`: `damaged` for a frame that is truncated, altered or followed by other bytes, `limit` for
  /// one whose contents are larger than an archive may be.
  package static func opened(_ bytes: Data, limits: ArchiveLimits = .standard) throws -> Data {
    guard isFrame(bytes) else { return bytes }
    do {
      return try Zstd.expand(bytes, maximumBytes: limits.archiveBytes)
    } catch let error as StoreError where error.code == .damaged {
      throw ArchiveError(.damaged, "The compressed archive is damaged: \(error.message)")
    } catch let error as StoreError where error.code == .tooLarge {
      throw ArchiveError(.limit, "The compressed archive is too large: \(error.message)")
    }
  }

  /// The most bytes a file may have: a frame around incompressible data is a little larger than the data.
  static func fileBytes(_ limits: ArchiveLimits) -> Int {
    let bytes = max(limits.archiveBytes, 0)
    return bytes < Int.max / 2 ? bytes + bytes / 128 + 1_024 : bytes - 1
  }
}
