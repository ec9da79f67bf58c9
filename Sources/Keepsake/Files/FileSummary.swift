public import Foundation

/// A tracked file as `TrackedFiles.list` shows it.
public struct FileSummary: Sendable, Hashable, Identifiable {
  /// The name of its versions, the same on every device. It comes from the device that wrote it and may be any path:
  /// `TrackedFiles.place(_:in:)` refuses names that aren't plain file names, and nothing else does.
  public let name: String
  /// The version that `TrackedFiles.place` writes.
  public let current: Version
  /// Whether devices wrote it without knowing of each other, and nobody has chosen yet.
  public let isConflicted: Bool
  /// Whether its versions stay on this device (`TrackedFile.keepLocal`).
  public let isLocal: Bool
  /// Whether it can be placed without the cloud; false if `Cloud.downloads` left its contents there, until
  /// `TrackedFiles.download`.
  public let isDownloaded: Bool
  /// Where the file is, if it was tracked or placed since the data was opened; nil otherwise.
  public let url: URL?

  /// The file's name.
  public var id: String { name }
}
