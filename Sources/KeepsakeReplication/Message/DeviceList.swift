/// A device of a player, as the cloud knows it.
package struct AccountDevice: Hashable, Sendable, Codable {
  package var device: DeviceID
  package var name: String
  package var createdMilliseconds: Int64
  /// When it last contacted the cloud, to about a minute.
  package var seenMilliseconds: Int64
  /// It is the device that sent the request.
  package var isThis: Bool
  /// Which of the requested versions it has, or has a later one of, sorted; nil if none were requested.
  package var has: [VersionID]?

  package init(
    device: DeviceID, name: String, createdMilliseconds: Int64, seenMilliseconds: Int64, isThis: Bool,
    has: [VersionID]? = nil
  ) {
    self.device = device
    self.name = name
    self.createdMilliseconds = createdMilliseconds
    self.seenMilliseconds = seenMilliseconds
    self.isThis = isThis
    self.has = has
  }
}

/// The response to a request for a player's devices.
package struct DeviceList: Hashable, Sendable, Codable {
  package var devices: [AccountDevice]

  package init(devices: [AccountDevice]) { self.devices = devices }
}
