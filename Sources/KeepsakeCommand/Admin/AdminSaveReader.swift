#if Cloud
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeServer
import KeepsakeStore

/// Shows the studio saves as `keepsake inspect` and `keepsake diff` do.
struct AdminSaveReader: SaveReading {
  private static let maximumBytes = ShownSave.maximumBytes
  /// Values in a text, each of which takes up to 200 bytes of memory.
  static let maximumValues = 2 << 20
  private static let limits = {
    var limits = ArchiveLimits.standard
    limits.archiveBytes = maximumBytes
    // As much as the most values of a text.
    limits.memoryBytes = 400 << 20
    return limits
  }()

  func plain(_ frame: Data, base: Data?, length: Int) throws -> Data {
    do {
      return try Zstd.decompress(frame, prefix: base, length: length)
    } catch {
      throw UnreadableSave("The save can't be decoded: \(ErrorReason.text(error)).")
    }
  }

  func json(_ save: Data) throws -> Data { try Self.inspection(of: save).json() }

  func difference(from old: Data, to new: Data) throws -> Data {
    ArchiveDifference(from: try Self.inspection(of: old), to: try Self.inspection(of: new)).json()
  }

  private static func inspection(of save: Data) throws -> ArchiveInspection {
    do {
      // What a game has exported, and then kept as a save, is opened, too. Only the game's secret opens it, if it is
      // sealed.
      let opened = try ExportedSave.plain(
        OpenedFile(save, at: "the save", maximumBytes: maximumBytes), seal: nil, maximumBytes: maximumBytes)
      try checkValues(in: opened)
      let inspection = try InspectCommand.inspection(of: opened, limits: limits)
      try SpellingRoom.check(inspection)
      return inspection
    } catch {
      throw UnreadableSave("The save can't be shown: \(CommandFailure(error).message).")
    }
  }

  /// Throws for text of more values than fit beside the rest of a server. Counts the bytes that stand between values,
  /// or begin one that has others in it, also where they are in a text.
  private static func checkValues(in file: OpenedFile) throws {
    guard SavedFile.isForeign(file.bytes), !SavedFile.isBinaryPropertyList(file.bytes) else { return }
    let count = file.bytes.withUnsafeBytes { bytes in
      bytes.reduce(into: 0) { count, byte in
        switch byte {
        case UInt8(ascii: "["), UInt8(ascii: "{"), UInt8(ascii: "("), UInt8(ascii: "<"), UInt8(ascii: ","),
          UInt8(ascii: ";"):
          count += 1
        default: break
        }
      }
    }
    guard count <= maximumValues else {
      throw CommandFailure(.data, "it has more than \(maximumValues) values")
    }
  }
}
#endif
