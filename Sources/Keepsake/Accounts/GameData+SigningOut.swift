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
  /// folder with history and backups. If the cloud hasn't got everything, or can't be told, nothing is forgotten: the error says what would be lost. A cloud
  /// that refuses this device, because it was removed or everything was deleted there, may have nothing of it: then all that is here would be lost. That is
  /// also so after a crash in the middle, which may leave the data of a device that is removed already.
  ///
  /// - Parameters:
  ///   - forgetting: Whether to delete this device's copy.
  ///   - losing: Whether to do so also where something is only here, this is the player's last device, or the cloud can't be told. What the server
  ///     believed this device could spend can then be freed by removing the device on another one.
  ///   - limit: How long closing may take, as with `close(within:)`.
  /// - Throws: What `close` throws. With `forgetting` also `GameDataError`, with nothing forgotten: `wouldBeLost`; `lastDevice`; `unreachable` or
  ///   `notConnected`, where all is sent but the server can't be told; `misuse` for data that were opened with `at:`, whose folder is the game's own to delete.
  ///   The data stay open, unless something was written or the server was lost in the last moment.
  public func signOut(forgetting: Bool = false, losing: Bool = false, within limit: Duration = .seconds(10)) async throws {
    guard forgetting else { return try close(within: limit) }
    guard !options.hasCustomURL else {
      throw GameDataError(.misuse, "data that were opened with `at:` lie in a folder of the game's own: close them and delete it")
    }
    let file = CloudFile(url: url.appendingPathComponent(CloudFile.name))
    let isEnabled = cloud.isEnabled
    let isRefused = try await losing ? false : isRefusedByCloud(file)
    try close(within: limit)
    // What was committed meanwhile counts, too.
    if !losing { try GameData.refuseLoss(at: url, options, everything: isRefused) }
    do {
      if !isRefused, let credentials = try file.read()?.credentials {
        try Self.requireEnabled(isEnabled)
        try await HTTPAccount.remove(credentials.device, for: credentials)
      }
    } catch {
      if !losing {
        let error = GameDataError.translated(error)
        guard (error as? GameDataError)?.code == .refused else { throw error }
        try GameData.refuseLoss(at: url, options, everything: true)
      }
    }
    try StoreRemoval.remove(url)
  }

  /// Sends everything, and throws what speaks against forgetting it. Whether the cloud refuses this device: there is nothing to tell it then.
  private func isRefusedByCloud(_ file: CloudFile) async throws -> Bool {
    var isRefused = false
    try await commitEverything()
    do {
      try await cloud.sync()
    } catch let error as GameDataError where error.code != .closed {
      // What did not go is what would be lost. Of a cloud that takes nothing from here nobody knows what it has.
      isRefused = error.code == .refused
    }
    try refuseLoss(everything: isRefused)
    guard !isRefused, let credentials = try file.read()?.credentials else { return isRefused }
    try Self.requireEnabled(cloud.isEnabled)
    do {
      let devices = try await HTTPAccount.devices(for: credentials)
      if devices.contains(where: { $0.device != credentials.device }) { return false }
    } catch {
      let error = GameDataError.translated(error)
      guard (error as? GameDataError)?.code == .refused else { throw error }
      try refuseLoss(everything: true)
      return true
    }
    throw GameDataError(
      .lastDevice, "this is the only device of the player that the cloud knows: without it no other gets a pairing code for what is there")
  }

  private func refuseLoss(everything: Bool) throws {
    try GameData.refuseLoss(
      of: core.store.read { try UnsentData($0, hasRecords: RecordsDatabase.isPresent(in: url), everything: everything) })
  }

  private static func requireEnabled(_ isEnabled: Bool) throws {
    guard isEnabled else { throw GameDataError(.notConnected, "the cloud is switched off, and can't be told: set `isEnabled` first") }
  }
}
