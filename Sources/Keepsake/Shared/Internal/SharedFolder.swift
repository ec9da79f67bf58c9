import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The location of shared containers' data on this device: in the folder of the game's data, one folder for each.
enum SharedFolder {
  static let name = "shared"

  static func url(of container: String, in game: URL) -> URL {
    all(in: game).appendingPathComponent(container, isDirectory: true)
  }

  static func all(in game: URL) -> URL { game.appendingPathComponent(name, isDirectory: true) }

  /// Throws `misuse` for a name that no server gives to a shared container: it is a folder's name on every platform.
  static func check(_ container: String) throws {
    if let objection = SharedContainerName.objection(to: container) { throw GameDataError(.misuse, objection) }
  }

  /// Returns the names of the shared containers that have data in a game's folder, sorted.
  ///
  /// - Throws: `StoreError` if the folder can't be read.
  static func names(in game: URL) throws -> [String] {
    let folder = all(in: game)
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return []
    } catch {
      throw StoreError(.io, "the shared data in \(folder.path) can't be listed", cause: error)
    }
    return names.filter { StoreRemoval.isStore(url(of: $0, in: game)) }.sorted()
  }
}
