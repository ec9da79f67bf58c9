public import Foundation
import KeepsakeReplication
import KeepsakeSync

/// One of the player's devices, as the cloud knows it.
public struct CloudDevice: Sendable, Hashable, Identifiable {
  /// Names it among all devices.
  public let id: String
  /// What it was called when it connected first.
  public let name: String
  /// When it connected first, by the server's clock.
  public let added: Date
  /// When it was last heard, to about a minute.
  public let lastSeen: Date
  /// Whether it is the one that asks.
  public let isThis: Bool
}

extension CloudDevice {
  init(_ device: AccountDevice) {
    func date(_ milliseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }
    self.init(
      id: device.device.description, name: device.name, added: date(device.createdMilliseconds),
      lastSeen: date(device.seenMilliseconds), isThis: device.isThis)
  }

  /// In the order in which they came.
  static func sorted(_ devices: [CloudDevice]) -> [CloudDevice] { devices.sorted { ($0.added, $0.id) < ($1.added, $1.id) } }
}

extension Cloud {
  /// The player's devices, this one included, in the order in which they came.
  ///
  ///     for device in try await game.cloud.devices() { show(device.name, device.lastSeen) }
  ///
  /// One round trip. Throws `GameDataError`: `notConnected`, `unreachable`, `refused`, and `misuse` where the cloud is a folder, which knows no devices.
  public func devices() async throws -> [CloudDevice] {
    CloudDevice.sorted(try await connection.asPlayer { try await HTTPAccount.devices(for: $0) }.map(CloudDevice.init))
  }

  /// Removes a device that was lost, sold or given away: from now on the cloud refuses it, and what money it could spend by itself is the other
  /// devices' again.
  ///
  ///     try await game.cloud.remove(device)
  ///
  /// What it holds stays on it, with whatever it hadn't sent; its `CloudStatus` says that it was removed. It may come back with a pairing code. Removing it
  /// twice does nothing. A server that was restored from a backup of before takes it again.
  ///
  /// One round trip. Throws as `devices()`, and `refused` for a device of another player.
  public func remove(_ device: CloudDevice) async throws {
    guard let id = DeviceID(device.id) else { throw GameDataError(.misuse, "\"\(device.id.prefix(80))\" is no device") }
    try await connection.asPlayer { try await HTTPAccount.remove(id, for: $0) }
  }

  /// Deletes everything that the cloud has of the player, for good: saves, values, money, devices. All of the player's devices are refused from then
  /// on, and keep what is on them, which is then nowhere else (`UnsentData`).
  ///
  /// One round trip. Throws as `devices()`, and `StoreError` if it is done and can't be noted here.
  public func deleteEverythingInTheCloud() async throws {
    try await connection.asPlayer { try await HTTPAccount.deletePlayer(for: $0) }
    // Not left to the next exchange: the data may be closed before there is one.
    try connection.core.store.write { transaction in
      var facts = try transaction.facts()
      facts.isRefused = true
      try transaction.setFacts(facts)
    }
  }
}

extension CloudConnection {
  /// Asks the server as the device that this is there; makes it known first if it isn't yet.
  func asPlayer<Value: Sendable>(_ call: @Sendable (CloudCredentials) async throws -> Value) async throws -> Value {
    await reconcile()
    try requireEnabled()
    let credentials = try await register()
    do {
      return try await call(credentials)
    } catch {
      throw GameDataError.translated(error)
    }
  }
}
