#if Cloud
import Crypto
import Foundation
import KeepsakeReplication

/// Creates and verifies the tokens of devices.
///
/// A token contains its device, player, container and app, and an HMAC-SHA256 over them. So a server that was restored
/// from a backup still recognizes a device that registered after the backup was made.
///
///     version 1 | device 16 | player 16 | container 16 | app 8 | HMAC 32     in base64url, without padding
struct TokenSigner: Sendable {
  private static let version: UInt8 = 1
  private static let payloadBytes = 1 + 3 * 16 + AppID.byteCount
  private static let tokenBytes = payloadBytes + 32
  private let key: SymmetricKey

  init(secret: Data) { key = SymmetricKey(data: secret) }

  /// What the banks of this cloud sign with: derived from the secret, so that knowing it doesn't make tokens.
  var bankKey: Data { Data(HMAC<SHA256>.authenticationCode(for: Data("keepsake bank".utf8), using: key)) }

  func token(for identity: DeviceIdentity) -> String {
    var payload = Data([Self.version])
    payload.append(identity.device.bytes)
    payload.append(identity.player.bytes)
    payload.append(identity.container.bytes)
    payload.append(identity.app.bytes)
    payload.append(contentsOf: HMAC<SHA256>.authenticationCode(for: payload, using: key))
    return payload.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Returns the holder of `token`; nil if this server didn't issue it. Takes the same time however much of it is
  /// right.
  func identity(of token: String) -> DeviceIdentity? {
    // 4 characters for 3 bytes; anything longer isn't decoded at all.
    guard token.utf8.count == (Self.tokenBytes * 4 + 2) / 3 else { return nil }
    let padding = String(repeating: "=", count: (4 - token.utf8.count % 4) % 4)
    let text = token.replacing("-", with: "+").replacing("_", with: "/") + padding
    guard let bytes = Data(base64Encoded: text), bytes.count == Self.tokenBytes else { return nil }
    let payload = bytes.prefix(Self.payloadBytes)
    let code = bytes.suffix(32)
    guard HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: payload, using: key),
      payload.first == Self.version
    else { return nil }
    let parts = payload.dropFirst()
    guard let device = DeviceID(bytes: parts.prefix(16)), let player = PlayerID(bytes: parts.dropFirst(16).prefix(16)),
      let container = ContainerID(bytes: parts.dropFirst(32).prefix(16))
    else { return nil }
    return DeviceIdentity(
      device: device, player: player, container: container, app: AppID(bytes: Data(parts.suffix(8))))
  }
}
#endif
