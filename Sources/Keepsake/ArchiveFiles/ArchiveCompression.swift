/// Whether `Archive.write` puts a zstd frame around an archive. `Archive.read` reads both.
public enum ArchiveCompression: Sendable, Hashable {
  /// The archive as it is. Best for a file that something else compresses or sends in parts: in a frame, one changed number changes
  /// most of the bytes that follow.
  case none
  /// A frame if it saves an eighth of the bytes at least, for archives of 4 KiB and more: a smaller file takes a block of the disk
  /// either way. Level 3, the one that the store uses for saves.
  case automatic
  /// Always a frame. Levels go from 1 (quick) to 22 (small); others count as the nearest of these.
  case zstd(level: Int)
}
