/// Which saved games of other devices come here by themselves.
///
///     game.cloud.downloads = .onDemand(above: 1_000_000)      // before `connect`
///     for slot in try game.saves.list() where !slot.isDownloaded { drawCloud(beside: slot) }
///     try await game.saves.download(.main)
///
/// Whatever it says: values, the wallet and scores come, a list shows every slot with its metadata, and of a conflict all sides come, or nobody could be asked
/// about it.
public enum DownloadPolicy: Sendable, Hashable {
  /// All of them: what is listed can be loaded, also without a network.
  case ahead
  /// Of a larger save, in bytes as the game wrote them, only what a list shows, until it is asked for (`SaveSlots.download`). What replaces a save that is on
  /// this device comes by itself: a game that plays on in a slot asks once.
  case onDemand(above: Int)

  /// Nil where there is none.
  var largest: Int? {
    guard case .onDemand(let bytes) = self else { return nil }
    return max(bytes, 0)
  }
}

extension Cloud {
  /// Which saved games of other devices come here by themselves; `.ahead` unless something else is set.
  ///
  /// It isn't kept: set it before `connect` each time. What only a list shows stays so until it is asked for, or until this says that it comes. Never waits.
  public var downloads: DownloadPolicy {
    get { connection.deliveryBuffer.downloads }
    set {
      connection.deliveryBuffer.set(newValue)
      // What comes by itself from now on is begun.
      connection.core.didCommit()
    }
  }
}
