/// Whether `Archive.write` compresses an archive into a zstd frame. `Archive.read` reads both forms.
public enum ArchiveCompression: Sendable, Hashable {
  /// The uncompressed archive. Best for a file that something else compresses or sends in parts: in a frame, one
  /// changed number changes most of the bytes after it.
  case none
  /// A frame if it saves at least an eighth of the bytes, for archives of 4 KiB or more: a smaller file takes one disk
  /// block either way. Uses level 3, as the store does for saves.
  case automatic
  /// Always a frame. Levels range from 1 (fast) to 22 (small); others are clamped to this range.
  case zstd(level: Int)
}
