public import Foundation
import KeepsakeStore

extension Archive {
  /// Writes `value` to the file at `url`: as a whole or not at all, and durably.
  ///
  ///     try Archive.write(world, to: url)
  ///
  /// A save of a newer program that is in the file is not overwritten: one of a newer format, or with a type of a newer version. What
  /// is damaged, or no archive at all, is replaced; no program could read it. Costs three waits on the disk, and reading the file that
  /// is there. For saved games with history and sync, see `GameData.saves`.
  ///
  /// - Parameters:
  ///   - classes: Classes that may be met and that no `subclasses:` lists.
  ///   - compression: Whether a zstd frame goes around the archive.
  ///   - replacingNewer: Overwrites a newer program's save, too; for when the player was asked.
  /// - Throws: `ArchiveError` with `tooNew` for a newer save, and what `encode` throws; `StoreError` if the file can't be written, or
  ///   if it can't be seen whether a newer save is in it. The file is then as it was. It does not promise to see a save that another
  ///   program writes at the same moment.
  public static func write<Value: Archivable>(
    _ value: Value, to url: URL, classes: [any Archivable.Type] = [], compression: ArchiveCompression = .automatic,
    replacingNewer: Bool = false, limits: ArchiveLimits = .standard
  ) throws {
    let bytes = try ArchiveFrame.sealed(encode(value, classes: classes, limits: limits), compression)
    if !replacingNewer { try refuseNewer(than: Value.self, at: url, classes: classes, limits: limits) }
    try AtomicFile.write(bytes, to: url)
  }

  /// The value in the file at `url`; nil if there is no file.
  ///
  ///     let world = try Archive.read(World.self, from: url) ?? World()
  ///
  /// Reads archives with and without a zstd frame. The three answers that a game gives differently are three here: nil for a missing
  /// file (start afresh), `damaged` (go back to an older copy), `tooNew` (ask for an update).
  ///
  /// - Throws: `ArchiveError`: `damaged` and `notAnArchive` for bytes that don't hold, an empty file among them, `tooNew` if a newer
  ///   program wrote it, `limit` before more memory is taken than `limits` allow; and `StoreError` if the file is there but can't be
  ///   read.
  public static func read<Value: Archivable>(
    _ type: Value.Type, from url: URL, classes: [any Archivable.Type] = [], context: Any? = nil,
    limits: ArchiveLimits = .standard
  ) throws -> Value? {
    guard let bytes = try fileBytes(at: url, limits: limits) else { return nil }
    guard !bytes.isEmpty else { throw ArchiveError(.damaged, "The file is empty: what it held is lost") }
    return try decode(type, from: ArchiveFrame.opened(bytes, limits: limits), classes: classes, context: context, limits: limits)
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
      throw ArchiveError(.limit, "The file at \(url.path) takes more than the \(limits.archiveBytes) bytes that an archive may take")
    }
  }
}
