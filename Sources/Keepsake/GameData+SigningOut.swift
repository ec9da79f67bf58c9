import Foundation
import KeepsakeStore
import KeepsakeSync

/// Leaving an account on this device.
extension GameData {
  /// Ends the player's session on this device. The data are closed when this returns, and another account's can be opened.
  ///
  ///     try await game.signOut()                        // all stays here for the next time
  ///     try await game.signOut(forgetting: true)        // nothing of the player stays on this device
  ///
  /// Without `forgetting` everything stays as it is: opening the same account and connecting goes on, as the same player.
  ///
  /// Forgetting sends what waits, has the server remove this device (so that money it could spend is the player's other devices' again), and deletes the
  /// folder with history and backups. If the cloud hasn't got everything, or can't be told, nothing is forgotten: the error says what would be lost. After
  /// a crash in the middle the data may still be here, of a device that the cloud refuses; `GameData.forget` or the same call deletes them.
  ///
  /// - Parameters:
  ///   - forgetting: Whether to delete this device's copy.
  ///   - losing: Whether to do so also where something is only here, or the cloud can't be told. What the server believed this device could spend can
  ///     then be freed by removing the device on another one.
  ///   - limit: How long closing may take, as with `close(within:)`.
  /// - Throws: What `close` throws. With `forgetting` also `GameDataError`, with nothing forgotten: `wouldBeLost`; `unreachable` or `notConnected`, where all is sent but the
  ///   server can't be told (the data are closed then); `misuse` for data that were opened with `at:`, whose folder is the game's own to delete.
  public func signOut(forgetting: Bool = false, losing: Bool = false, within limit: Duration = .seconds(10)) async throws {
    guard forgetting else { return try close(within: limit) }
    guard !opening.isPlacedByGame else {
      throw GameDataError(.misuse, "data that were opened with `at:` lie in a folder of the game's own: close them and delete it")
    }
    if !losing {
      try await commitEverything()
      do {
        try await cloud.sendNow()
      } catch let error as GameDataError where error.code != .closed {
        // What did not go is what would be lost.
      }
      try GameData.refuseLoss(of: core.store.read { try UnsentData($0, hasRecords: RecordsDatabase.isPresent(in: url)) })
    }
    let isEnabled = cloud.isEnabled
    let file = CloudFile(url: url.appendingPathComponent(CloudFile.name))
    try close(within: limit)
    // What was committed meanwhile counts, too.
    if !losing { try GameData.refuseLoss(at: url, opening) }
    do {
      if let credentials = try file.read()?.credentials {
        guard isEnabled else { throw GameDataError(.notConnected, "the cloud is switched off, and can't be told: set `isEnabled` first") }
        try await HTTPAccount.remove(credentials.device, for: credentials)
      }
    } catch {
      let error = GameDataError.translated(error)
      // A device that was removed before needs no further removal.
      guard losing || (error as? GameDataError)?.code == .refused else { throw error }
    }
    try StoreRemoval.remove(url)
  }
}
