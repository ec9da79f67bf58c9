public import Foundation
import KeepsakeStore

extension Archive {
  /// Writes a value to a file, atomically and durably.
  ///
  ///     try Archive.write(world, to: url)
  ///
  /// If the file contains a save of a newer program, it is not overwritten: one in a newer format, or with a newer
  /// version of a type. Contents that are damaged, or not an archive, are replaced; no program could read them. Costs
  /// three waits for the disk, and reading the existing file. For saved games with history and sync, see
  /// `GameData.saves`.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - url: The file.
  ///   - classes: Classes that may occur and that no `subclasses:` lists.
  ///   - compression: Whether to compress the archive into a zstd frame.
  ///   - replacingNewer: Whether to overwrite even a newer program's save; for when the player was asked.
  ///   - limits: The limits that the archive, and an existing one, must keep.
  /// - Throws: `ArchiveError` with `tooNew` for a newer save, or `limit` for an existing file that is too large to be
  ///   checked, and what `encode` throws; `StoreError` if the file can't be written, or an existing one can't be read.
  ///   The file is unchanged then, or, if only making its name durable failed, has the new contents. A save that
  ///   another program writes at the same moment may go unnoticed.
  public static func write<Value: Archivable>(
    _ value: Value, to url: URL, classes: [any Archivable.Type] = [], compression: ArchiveCompression = .automatic,
    replacingNewer: Bool = false, limits: ArchiveLimits = .standard
  ) throws {
    let bytes = try ArchiveFrame.sealed(encode(value, classes: classes, limits: limits), compression)
    if !replacingNewer { try refuseNewer(than: Value.self, at: url, classes: classes, limits: limits) }
    try AtomicFile.write(bytes, to: url)
  }

  /// Reads the value in a file.
  ///
  ///     let world = try Archive.read(World.self, from: url) ?? World()
  ///
  /// Reads archives with and without a zstd frame. The three cases in which a game reacts differently are distinct: nil
  /// for a missing file (start afresh), `damaged` (go back to an older copy), `tooNew` (ask for an update).
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - url: The file.
  ///   - classes: Classes of objects in the archive that no `subclasses:` lists.
  ///   - context: Passed to `didDecode(context:)` and available as `ArchiveReader.context`.
  ///   - limits: The limits that the archive must keep.
  /// - Returns: The value; nil if there is no file.
  /// - Throws: `ArchiveError` with `damaged` or `notAnArchive` for invalid bytes, including an empty file, `tooNew` if
  ///   a newer program wrote it, or `limit` before more memory is used than `limits` allow, and what `decode` throws
  ///   for contents that don't fit the type; `StoreError` if the file exists but can't be read.
  public static func read<Value: Archivable>(
    _ type: Value.Type, from url: URL, classes: [any Archivable.Type] = [], context: Any? = nil,
    limits: ArchiveLimits = .standard
  ) throws -> Value? {
    guard let bytes = try fileBytes(at: url, limits: limits) else { return nil }
    guard !bytes.isEmpty else { throw ArchiveError(.damaged, "The file is empty: its contents are lost") }
    return try decode(
      type, from: ArchiveFrame.opened(bytes, limits: limits), classes: classes, context: context, limits: limits)
  }

  private static func refuseNewer<Value: Archivable>(
    than type: Value.Type, at url: URL, classes: [any Archivable.Type], limits: ArchiveLimits
  ) throws {
    guard let bytes = try fileBytes(at: url, limits: limits) else { return }
    let archive: Data
    do {
      archive = try ArchiveFrame.opened(bytes, limits: limits)
    } catch let error as ArchiveError where error.code == .damaged {
      return
    }
    if let error = try newerSave(than: type, in: archive, classes: classes, limits: limits) { throw error }
  }

  private static func fileBytes(at url: URL, limits: ArchiveLimits) throws -> Data? {
    do {
      return try AtomicFile.read(url, maximumBytes: ArchiveFrame.fileBytes(limits))
    } catch let error as StoreError where error.code == .tooLarge {
      throw ArchiveError(
        .limit, "The file at \(url.path) takes more than the \(limits.archiveBytes) bytes that an archive may take")
    }
  }
}
