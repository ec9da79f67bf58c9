public import Foundation
import KeepsakeStore

extension Archive {
  /// Writes `value` to the file at `url`: as a whole or not at all, and durably.
  ///
  ///     try Archive.write(world, to: url)
  ///
  /// Throws `ArchiveError` if the value can't be archived, `StoreError` if the file can't be written; the file is then as it
  /// was. Costs three waits on the disk. For saved games with history and sync, see `GameData.saves`.
  public static func write<Value: Archivable>(_ value: Value, to url: URL) throws {
    try AtomicFile.write(encode(value), to: url)
  }

  /// The value in the file at `url`; nil if there is no file.
  ///
  ///     let world = try Archive.read(World.self, from: url) ?? World()
  ///
  /// Throws `ArchiveError`: `damaged` and `notAnArchive` for bytes that don't hold, `tooNew` if a newer program wrote it;
  /// and `StoreError` if the file is there but can't be read.
  public static func read<Value: Archivable>(
    _ type: Value.Type, from url: URL, classes: [any Archivable.Type] = [], context: Any? = nil,
    limits: ArchiveLimits = .standard
  ) throws -> Value? {
    guard let bytes = try AtomicFile.read(url, maximumBytes: limits.archiveBytes) else { return nil }
    return try decode(type, from: bytes, classes: classes, context: context, limits: limits)
  }
}
