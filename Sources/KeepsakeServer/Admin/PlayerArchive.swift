#if Cloud
package import Foundation

/// The tar archive of everything of a player, on the disk of the machine that asked for the export.
package enum PlayerArchive {
  /// The name of its last file.
  static let last = "end.json"

  /// Puts an archive that was downloaded where it belongs, in place of what is there, if it is whole.
  ///
  /// - Parameters:
  ///   - partial: Where it is, in the same folder.
  ///   - file: Where it is put.
  /// - Returns: Whether it is whole; if not, nothing has changed.
  /// - Throws: The system's error, or a `ServerError`, if a file can't be read or moved.
  package static func accept(_ partial: URL, as file: URL) throws -> Bool {
    guard try isWhole(partial) else { return false }
    try PrivateFile.sync(partial)
    try PrivateFile.move(partial, to: file)
    return true
  }

  /// Whether every file in it is followed by another one until the last, whatever is in them: a player may have made
  /// contents that look like the end of an archive.
  static func isWhole(_ file: URL) throws -> Bool {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }  // Only read from: closing can lose nothing.
    let size = Int64(clamping: try handle.seekToEnd())
    var (place, path): (Int64, String?) = (0, nil)
    while path != last {
      try handle.seek(toOffset: UInt64(place))
      guard let header = try handle.read(upToCount: TarEntry.headerBytes), let entry = TarEntry(header: header),
        entry.size <= size
      else { return false }
      place += Int64(TarEntry.headerBytes) + entry.size + Int64(entry.padding)
      guard place <= size else { return false }
      path = entry.path
    }
    guard size - place == Int64(TarEntry.end.count) else { return false }
    try handle.seek(toOffset: UInt64(place))
    return try handle.readToEnd() == TarEntry.end
  }
}
#endif
