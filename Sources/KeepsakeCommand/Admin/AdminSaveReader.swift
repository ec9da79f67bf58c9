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
      let opened = try OpenedFile(save, at: "the save")
      guard !SaveFileEnvelope.isSaveFile(opened.bytes) else {
        // What a game has exported, and then kept as a save. Only the game's secret opens it, if it is sealed.
        return try InspectCommand.inspection(of: ExportedSave.plain(opened, seal: nil))
      }
      let inspection = try InspectCommand.inspection(of: opened)
      try SpellingRoom.check(inspection)
      return inspection
    } catch {
      throw UnreadableSave("The save can't be shown: \(CommandFailure(error).message).")
    }
  }
}
#endif
