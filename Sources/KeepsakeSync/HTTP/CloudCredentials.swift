package import Foundation
package import KeepsakeReplication

package enum PlayerKind {}
/// Names an anonymous player of a cloud.
package typealias PlayerID = Identifier<PlayerKind>

/// What a device needs to reach its player's container: keep it where only the player can read it (a file of mode 0600).
package struct CloudCredentials: Hashable, Sendable, Codable {
  package var url: URL
  package var device: DeviceID
  package var player: PlayerID
  package var container: ContainerID
  /// Whoever holds it is this device, for the cloud.
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
  /// Without the token, so that a log doesn't tell it.
  package var description: String { "device \(device) of player \(player) at \(url)" }
  package var debugDescription: String { description }
}
