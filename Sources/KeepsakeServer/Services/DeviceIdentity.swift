#if Cloud
import Foundation
import KeepsakeReplication

/// Who a request comes from.
struct DeviceIdentity: Hashable, Sendable {
  var device: DeviceID
  var player: PlayerID
  var container: ContainerID
  var app: AppID
}
#endif
