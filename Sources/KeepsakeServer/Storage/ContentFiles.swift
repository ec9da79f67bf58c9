#if Cloud
import Foundation

/// The files of contents that are too large for the database.
struct ContentFiles: Sendable {
  let folder: URL

  /// Returns a file's location and size, from its name in the database; nil if it is gone, as after a restore of the
  /// database alone.
  func file(named name: String) throws -> KeptContent.Bytes? {
    let url = folder.appendingPathComponent(name)
    do {
      let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
      guard let size = attributes[.size] as? NSNumber else { throw CocoaError(.fileReadUnknown) }
      return .file(url, count: size.intValue)
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return nil
    } catch {
      throw ServerError(.inputOutput, "The content file \(url.path) can't be read.", cause: error)
    }
  }

  /// Takes over a file under a new name, which is on the disk when this returns.
  func adopt(_ file: URL, as name: String) throws {
    try PrivateFile.sync(file)
    try PrivateFile.move(file, to: folder.appendingPathComponent(name))
  }

  func remove(_ name: String) throws {
    do {
      try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      // It was lost earlier.
    } catch {
      throw ServerError(.inputOutput, "The content file \(name) can't be removed.", cause: error)
    }
  }

  /// The names of all files here, sorted.
  func names() throws -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    } catch {
      throw ServerError(.inputOutput, "The folder \(folder.path) can't be read.", cause: error)
    }
  }
}
#endif
