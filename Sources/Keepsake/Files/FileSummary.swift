public import Foundation

/// A tracked file, as listed by `TrackedFiles.list`.
public struct FileSummary: Sendable, Hashable, Identifiable {
  /// The name of its versions, the same on every device. It comes from the device that wrote the file and may be any
  /// path: only `TrackedFiles.place(_:in:)` rejects names that aren't plain file names.
  public let name: String
  /// The version that `TrackedFiles.place` writes.
  public let current: Version
  /// Whether devices wrote it independently of each other and the conflict isn't resolved yet.
  public let isConflicted: Bool
  /// Whether its versions stay on this device (`TrackedFile.keepLocal`).
  public let isLocal: Bool
  /// Whether it can be placed without the cloud. False while `Cloud.downloads` leaves its contents in the cloud, until
  /// `TrackedFiles.download`.
  public let isDownloaded: Bool
  /// The file's location, if it was tracked or placed since the data was opened; otherwise nil.
  public let url: URL?

  /// The file's name.
  public var id: String { name }
}
