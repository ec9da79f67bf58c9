public import Foundation

/// A save of an older game, which kept it without Keepsake: in Game Center, or as a file.
public struct OlderSave: Sendable, Hashable {
  /// The name that the older game gave it, or its file's name.
  public var name: String
  /// What the older game saved.
  public var bytes: Data
  /// When the older game saved it. Imported to the second; should be the same on every device.
  public var modified: Date
  /// The name of the device that saved it, as far as it is known; nil if it isn't.
  public var device: String?

  /// Creates a save of an older game.
  ///
  /// - Parameters:
  ///   - name: The name that the older game gave it, or its file's name.
  ///   - bytes: What the older game saved.
  ///   - modified: When the older game saved it.
  ///   - device: The name of the device that saved it, if it is known.
  public init(name: String, bytes: Data, modified: Date, device: String? = nil) {
    self.name = name
    self.bytes = bytes
    self.modified = modified
    self.device = device
  }
}
