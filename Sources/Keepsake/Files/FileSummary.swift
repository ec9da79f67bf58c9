public import Foundation

/// A tracked file as a list shows it.
public struct FileSummary: Sendable, Hashable, Identifiable {
  /// What its versions are found by, on every device. It comes from whoever wrote it, so it may be a path that leads anywhere: `TrackedFiles.place(_:in:)`
  /// refuses such a name, which nothing else does.
  public let name: String
  /// The version that `TrackedFiles.place` would put down.
  public let current: Version
  /// Devices wrote it without knowing of each other, and nobody chose yet.
  public let isConflicted: Bool
  /// Its versions stay on this device (`TrackedFile.keepLocal`).
  public let isLocal: Bool
  /// It can be placed without asking the cloud: false where `Cloud.downloads` left its bytes there, until `TrackedFiles.download`.
  public let isDownloaded: Bool
  /// Where this device has it, since it was tracked or placed in this run; nil until then.
  public let url: URL?

  public var id: String { name }
}
