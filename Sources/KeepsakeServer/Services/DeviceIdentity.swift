#if Cloud
import Foundation
import KeepsakeReplication

enum PlayerKind {}
/// The identifier of an anonymous player.
typealias PlayerID = Identifier<PlayerKind>

/// Who a request comes from.
struct DeviceIdentity: Hashable, Sendable {
  var device: DeviceID
  var player: PlayerID
  var container: ContainerID
  var app: AppID
}

extension Identifier {
  static var byteCount: Int { 16 }

  /// The 16 bytes, most significant first.
  var bytes: Data {
    var result = Data(capacity: 16)
    withUnsafeBytes(of: high.bigEndian) { result.append(contentsOf: $0) }
    withUnsafeBytes(of: low.bigEndian) { result.append(contentsOf: $0) }
    return result
  }

  /// Creates an identifier from 16 bytes; nil for any other count.
  init?(bytes: Data) {
    guard bytes.count == 16 else { return nil }
    func word(_ part: Data) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(high: word(bytes.prefix(8)), low: word(bytes.suffix(8)))
  }
}
#endif
