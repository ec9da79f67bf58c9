/// A device of a player, as the cloud knows it.
package struct AccountDevice: Hashable, Sendable, Codable {
  package var device: DeviceID
  package var name: String
  package var createdMilliseconds: Int64
  /// When it was last heard, to about a minute.
  package var seenMilliseconds: Int64
  /// It is the one that asks.
  package var isThis: Bool
  /// Which of the versions that were asked about it has, or has a later one of, sorted; nil where none were asked about.
  package var has: [VersionID]?

  package init(
    device: DeviceID, name: String, createdMilliseconds: Int64, seenMilliseconds: Int64, isThis: Bool, has: [VersionID]? = nil
  ) {
    self.device = device
    self.name = name
    self.createdMilliseconds = createdMilliseconds
    self.seenMilliseconds = seenMilliseconds
    self.isThis = isThis
    self.has = has
  }
}

/// What the cloud answers who asks for a player's devices.
package struct DeviceList: Hashable, Sendable, Codable {
  package var devices: [AccountDevice]

  package init(devices: [AccountDevice]) { self.devices = devices }
}
