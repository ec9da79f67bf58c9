public import Foundation
import KeepsakeReplication
import KeepsakeSync

/// One of the player's devices, as the cloud knows it.
public struct CloudDevice: Sendable, Hashable, Identifiable {
  /// The device's identifier, unique among all devices.
  public let id: String
  /// The name it had when it first connected.
  public let name: String
  /// When it first connected, by the server's clock.
  public let added: Date
  /// When the server last received a request from it, to within about a minute.
  public let lastSeen: Date
  /// Whether it is this device.
  public let isThis: Bool
}

extension CloudDevice {
  init(_ device: AccountDevice) {
    func date(_ milliseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }
    self.init(
      id: device.device.description, name: device.name, added: date(device.createdMilliseconds),
      lastSeen: date(device.seenMilliseconds), isThis: device.isThis)
  }

  /// Sorts devices in the order in which they were added.
  static func sorted(_ devices: [CloudDevice]) -> [CloudDevice] {
    devices.sorted { ($0.added, $0.id) < ($1.added, $1.id) }
  }
}

extension Cloud {
  /// Lists the player's devices, including this one, in the order in which they were added.
  ///
  /// ```swift
  /// for device in try await game.cloud.devices() { show(device.name, device.lastSeen) }
  /// ```
  ///
  /// Costs one round trip.
  ///
  /// - Returns: The devices.
  /// - Throws: `GameDataError` with `notConnected`, `unreachable` or `refused`; with `misuse` if the cloud is a folder,
  ///   which knows no devices; `StoreError` if this device's credentials can't be read or stored.
  public func devices() async throws -> [CloudDevice] {
    CloudDevice.sorted(try await connection.asPlayer { try await HTTPAccount.devices(for: $0) }.map(CloudDevice.init))
  }

  /// Removes a device that was lost, sold or given away. The cloud refuses it from now on, and money reserved for it
  /// returns to the player's other devices.
  ///
  /// ```swift
  /// try await game.cloud.remove(device)
  /// ```
  ///
  /// The device keeps its data, including what it hasn't sent; its `CloudStatus` reports that it was removed. It can
  /// join again with a pairing code. Removing it twice does nothing. A server that is restored from an older backup
  /// accepts it again. Costs one round trip.
  ///
  /// - Parameter device: A device from `devices()`.
  /// - Throws: As `devices()`, and `GameDataError` with `refused` for another player's device.
  public func remove(_ device: CloudDevice) async throws {
    guard let id = DeviceID(device.id) else {
      throw GameDataError(.misuse, "\"\(device.id.prefix(80))\" is not a device")
    }
    try await connection.asPlayer { try await HTTPAccount.remove(id, for: $0) }
  }

  /// Returns the player's identifier at the server: the game sends it to its own servers, which order grants, refunds
  /// and payments of receipts for it. It is no secret, and the same on all of the player's devices; `join` makes it
  /// another one.
  ///
  /// Costs a round trip if this device isn't registered yet, and reading a small file otherwise.
  ///
  /// - Returns: 32 hexadecimal digits.
  /// - Throws: As `devices()`.
  public func player() async throws -> String { try await connection.asPlayer { $0.player.description } }

  /// Deletes everything that the cloud stores for the player: saves, values, money, devices. This can't be undone.
  ///
  /// From then on, the cloud refuses all of the player's devices, also in shared containers (`GameData.shared(_:)`), of
  /// which only what another game of the player uses is kept. They keep their own data, which then exists nowhere else
  /// (see `UnsentData`). Costs one round trip.
  ///
  /// - Throws: As `devices()`; `StoreError` if the deletion succeeded but couldn't be recorded on this device.
  public func deleteEverythingInTheCloud() async throws {
    try await connection.asPlayer { try await HTTPAccount.deletePlayer(for: $0) }
    // Recorded here, not in the next exchange: the data may be closed before there is one.
    for cloud in [self] + state.followers.following { try await cloud.connection.recordRefusal() }
  }
}

extension CloudConnection {
  /// Makes a request as this device, and registers it first if needed.
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

  /// Records that the cloud has deleted this device's player. Requests of before end first: their responses would say
  /// that the cloud accepts this device.
  fileprivate func recordRefusal() async throws {
    await service?.pause()
    let recorded = Result {
      try core.store.write { transaction in
        var facts = try transaction.facts()
        facts.isRefused = true
        try transaction.setFacts(facts)
      }
    }
    await reconcile()
    try recorded.get()
  }
}
