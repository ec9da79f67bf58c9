package import Foundation
package import KeepsakeReplication

/// What a device needs to access its player's container. Store it where only the player can read it (a file of mode
/// 0600).
package struct CloudCredentials: Hashable, Sendable, Codable {
  package var url: URL
  package var device: DeviceID
  package var player: PlayerID
  package var container: ContainerID
  /// Proves to the cloud that a request comes from this device: keep it secret.
  package var token: String

  package init(url: URL, device: DeviceID, player: PlayerID, container: ContainerID, token: String) {
    self.url = url
    self.device = device
    self.player = player
    self.container = container
    self.token = token
  }
}

extension CloudCredentials: CustomStringConvertible, CustomDebugStringConvertible {
  /// Omits the token, so that it doesn't end up in a log.
  package var description: String { "device \(device) of player \(player) at \(url)" }
  package var debugDescription: String { description }
}
