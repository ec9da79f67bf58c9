package import Foundation
package import KeepsakeArchive
import KeepsakeStore

/// The zstd frame that may stand around an archive in a file: see docs/FORMAT.md.
package enum ArchiveFrame {
  /// What fills a block on most disks anyway.
  private static let smallestBytes = 4_096
  /// A frame has to save this part of the bytes.
  private static let smallestGain = 8

  /// Throws `StoreError` if no memory is left.
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

  /// Whether bytes begin like a frame, or like one that was cut off.
  package static func isFrame(_ bytes: Data) -> Bool {
    !bytes.isEmpty && bytes.prefix(Zstd.frameMagic.count).elementsEqual(Zstd.frameMagic.prefix(bytes.count))
  }

  /// Whether bytes begin like an archive.
  package static func isArchive(_ bytes: Data) -> Bool { bytes.starts(with: Archive.magic) }

  /// The archive in a file's bytes, which are either it or a frame around it. Whether it is one isn't looked at.
  ///
  /// Throws `ArchiveError`: `damaged` for a frame that is cut off, altered or followed by anything, `limit` for one that holds more
  /// than an archive may take.
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

  /// The most bytes that a file may take: a frame around what doesn't compress is a little larger than that.
  static func fileBytes(_ limits: ArchiveLimits) -> Int {
    let bytes = max(limits.archiveBytes, 0)
    return bytes < Int.max / 2 ? bytes + bytes / 128 + 1_024 : bytes - 1
  }
}
