import Foundation
import KeepsakeStore
import KeepsakeSync

/// Signing out of an account on this device.
extension GameData {
  /// Closes the data, and deletes it from this device if requested. Another account can be opened afterwards.
  ///
  /// ```swift
  /// try await game.signOut()                     // the data stays for the next time
  /// try await game.signOut(forgetting: true)     // nothing of the player stays on this device
  /// ```
  ///
  /// Without `forgetting`, nothing is deleted: opening and connecting the same account continues as the same player.
  ///
  /// With `forgetting`, queued changes are sent, the server removes this device (so that money reserved for it returns
  /// to the player's other devices), and the folder is deleted with its history and backups. If the cloud doesn't have
  /// everything, or can't be reached, nothing is deleted, and the error lists what would be lost. The same applies to
  /// the data of shared containers, which is deleted with it. If the cloud refuses
  /// this device, because the device was removed or everything was deleted there, all of the data counts as unsent. The
  /// same applies after a crash in the middle of signing out.
  ///
  /// - Parameters:
  ///   - forgetting: Whether to delete this device's copy.
  ///   - losing: Whether to delete it even if some data exists only on this device, this is the player's last device,
  ///     or the cloud can't be reached. Money that the server still has reserved for this device is then released by
  ///     removing the device on another one.
  ///   - limit: How long closing may take, as for `close(within:)`.
  /// - Throws: As `close`. With `forgetting`, `GameDataError`, with nothing deleted: `wouldBeLost`; `lastDevice`;
  ///   `unreachable` or `notConnected` if everything is sent but the server can't be notified; `misuse` for data that
  ///   was opened with `at:`, whose folder the game deletes itself. The data stays open, unless something was written
  ///   or the server became unreachable at the last moment.
  public func signOut(forgetting: Bool = false, losing: Bool = false, within limit: Duration = .seconds(10))
    async throws
  {
    guard forgetting else { return try close(within: limit) }
    guard !options.hasCustomURL else {
      throw GameDataError(
        .misuse,
        "data that was opened with `at:` is in a folder that the game chose: close the data and delete the folder")
    }
    let file = CloudFile(in: url, of: nil, core.credentials)
    let isEnabled = cloud.isEnabled
    let isRefused = try await losing ? false : isRefusedByCloud(file)
    try close(within: limit)
    // Data committed in the meantime counts, too.
    if !losing {
      try GameData.refuseLoss(at: url, options, everything: isRefused)
      try GameData.refuseLossOfShared(in: url, options)
    }
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
    try core.credentials.deleteStore(at: url)
  }

  /// Sends everything, and throws if the data must not be deleted. Returns whether the cloud refuses this device, which
  /// then doesn't have to be removed from it.
  private func isRefusedByCloud(_ file: CloudFile) async throws -> Bool {
    var isRefused = false
    for (_, shared) in sharedGames.all { try await shared.sendEverything() }
    try await commitEverything()
    do {
      try await cloud.sync()
    } catch let error as GameDataError where error.code != .closed {
      // What couldn't be sent is what would be lost. If the cloud refuses this device, it isn't known what the cloud
      // has.
      isRefused = error.code == .refused
    }
    try refuseLoss(everything: isRefused)
    guard !isRefused, let credentials = try file.read()?.credentials else { return isRefused }
    try Self.requireEnabled(cloud.isEnabled)
    do {
      let devices = try await HTTPAccount.devices(for: credentials)
      if devices.contains(where: { $0.device != credentials.device }) { return false }
      if try await cloud.hasWayBack(credentials) { return false }
    } catch {
      let error = GameDataError.translated(error)
      guard (error as? GameDataError)?.code == .refused else { throw error }
      try refuseLoss(everything: true)
      return true
    }
    throw GameDataError(
      .lastDevice,
      """
      this is the only device of the player that the cloud knows, and there is no recovery code and no identity: \
      without the device, nothing could reach the data in the cloud
      """)
  }

  /// Sends what shared data has, as far as its cloud takes it.
  private func sendEverything() async throws {
    try await commitEverything()
    do {
      try await cloud.sync()
    } catch let error as GameDataError where error.code != .closed {
      // What couldn't be sent is what would be lost.
    }
    try refuseLoss(everything: false)
  }

  private func refuseLoss(everything: Bool) throws {
    try GameData.refuseLoss(
      of: core.store.read { try UnsentData($0, hasRecords: RecordsDatabase.isPresent(in: url), everything: everything) }
    )
  }

  private static func requireEnabled(_ isEnabled: Bool) throws {
    guard isEnabled else {
      throw GameDataError(.notConnected, "the cloud is switched off and can't be notified: set `isEnabled` first")
    }
  }
}
