/// Which saves of other devices are downloaded automatically: the values of `Cloud.downloads`.
///
/// ```swift
/// game.cloud.downloads = .onDemand(above: 1_000_000)    // before `connect`
/// for slot in try game.saves.list() where !slot.isDownloaded { drawCloud(beside: slot) }
/// try await game.saves.download(.main)
/// ```
///
/// Values, the wallet, scores and every slot's metadata are always received, and so are all sides of a conflict.
public enum DownloadPolicy: Sendable, Hashable {
  /// All saves: every listed save can be loaded without a network.
  case ahead
  /// For saves larger than this many bytes, uncompressed, only the metadata, until `SaveSlots.download`. A version that
  /// replaces a save on this device is downloaded automatically, so a game that continues in a slot has to ask only
  /// once.
  case onDemand(above: Int)

  /// The size above which a save isn't downloaded; nil without a limit.
  var largest: Int? {
    guard case .onDemand(let bytes) = self else { return nil }
    return max(bytes, 0)
  }
}

extension Cloud {
  /// Which saves of other devices are downloaded automatically; `.ahead` by default.
  ///
  /// The setting isn't kept across restarts: set it before `connect` each time. Saves that were left in the cloud stay
  /// there until they are requested, or until this setting includes them. Never blocks.
  public var downloads: DownloadPolicy {
    get { connection.deliveryBuffer.downloads }
    set {
      connection.deliveryBuffer.set(newValue)
      // Starts downloading what the new setting downloads automatically.
      connection.core.cloud.didCommit()
    }
  }
}
