#if Cloud
import Crypto
import Foundation
import KeepsakeReplication

/// Creates and verifies the tokens of devices.
///
/// A token contains its device, player, container and app, when it was issued, and an HMAC-SHA256 over them. So a
/// server that was restored from a backup still recognizes a device that registered after the backup was made.
///
///     version 2 | device 16 | player 16 | container 16 | app 8 | issued 8 | renewals 2 | HMAC 32
///     version 1 | device 16 | player 16 | container 16 | app 8 | HMAC 32
///
/// In base64url, without padding; numbers are big-endian, `issued` in milliseconds since 1970. Version 1 is of earlier
/// releases, and counts as issued when its secret was first seen by a release that knows ages.
struct TokenSigner: Sendable {
  /// Days that a token is valid, unless configured otherwise: a player who comes back once a year needs no new one.
  static let defaultLifetimeDays = 400
  private static let millisecondsPerDay: Int64 = 86_400_000
  private static let holderBytes = 1 + 3 * 16 + AppID.byteCount
  private static let payloadBytes = [1: holderBytes, 2: holderBytes + 8 + 2]
  private static let codeBytes = 32

  private struct Key: Sendable {
    var key: SymmetricKey
    var createdMilliseconds: Int64
  }
  /// The newest one first, which signs.
  private let keys: [Key]
  private let lifetimeMilliseconds: Int64
  /// What the banks of this cloud sign with, the newest first: derived from the secrets, so that knowing it doesn't
  /// make tokens.
  let bankKeys: [Data]
  /// What nonces are recognized by, derived as well: under the newest secrets, as tokens are valid.
  let nonceKeys: [Data]

  init(secrets: [ServerSecrets.Secret], lifetimeDays: Int = Self.defaultLifetimeDays) {
    let keys = secrets.map { Key(key: SymmetricKey(data: $0.bytes), createdMilliseconds: $0.createdMilliseconds) }
    lifetimeMilliseconds = Int64(lifetimeDays) * Self.millisecondsPerDay
    func derived(_ purpose: String) -> [Data] {
      keys.map { Data(HMAC<SHA256>.authenticationCode(for: Data(purpose.utf8), using: $0.key)) }
    }
    self.keys = keys
    bankKeys = derived("keepsake bank")
    nonceKeys = Array(derived("keepsake nonce").prefix(ServerSecrets.valid))
  }

  /// Returns a new token.
  ///
  /// - Parameter renewals: How many tokens the device had before.
  func token(for identity: DeviceIdentity, now: Int64, renewals: UInt16 = 0) -> String {
    guard let key = keys.first?.key else { return "" }
    var payload = Data([2])
    payload.append(identity.device.bytes)
    payload.append(identity.player.bytes)
    payload.append(identity.container.bytes)
    payload.append(identity.app.bytes)
    withUnsafeBytes(of: now.bigEndian) { payload.append(contentsOf: $0) }
    withUnsafeBytes(of: renewals.bigEndian) { payload.append(contentsOf: $0) }
    payload.append(contentsOf: HMAC<SHA256>.authenticationCode(for: payload, using: key))
    return payload.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Returns a new token for the holder of `token`.
  func renewed(_ token: VerifiedToken, app: AppID? = nil, now: Int64) -> String {
    var identity = token.identity
    if let app { identity.app = app }
    // Never earlier than the one before, also if a clock was ahead when that was issued: the later one counts.
    return self.token(
      for: identity, now: max(now, token.issuedMilliseconds),
      renewals: token.renewals == .max ? .max : token.renewals + 1)
  }

  /// Returns what `token` says; nil if this server didn't issue it. Takes the same time however much of it is right.
  func verify(_ token: String, now: Int64) -> VerifiedToken? {
    // 4 characters for 3 bytes; anything of another length isn't decoded at all.
    guard let version = Self.payloadBytes.first(where: { token.utf8.count == Self.characters($0.value) }) else {
      return nil
    }
    guard let bytes = Self.bytes(ofBase64: token.utf8), bytes.count == version.value + Self.codeBytes else {
      return nil
    }
    let payload = bytes.prefix(version.value)
    let code = bytes.suffix(Self.codeBytes)
    var signer: Int?
    for (index, key) in keys.enumerated().reversed()
    where HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: payload, using: key.key) { signer = index }
    guard let signer, payload.first.map(Int.init) == version.key, let identity = Self.holder(payload.dropFirst()) else {
      return nil
    }
    let isOld = version.key == 1
    let numbers = isOld ? Data() : payload.suffix(10)
    let issued =
      isOld ? keys[signer].createdMilliseconds : Int64(truncatingIfNeeded: Self.number(numbers.prefix(8)))
    let age = max(0, now.subtractingReportingOverflow(issued).partialValue)
    return VerifiedToken(
      identity: identity, issuedMilliseconds: issued,
      renewals: isOld ? 0 : UInt16(truncatingIfNeeded: Self.number(numbers.suffix(2))),
      isExpired: age > lifetimeMilliseconds || signer >= ServerSecrets.valid,
      isDue: isOld || signer > 0 || age > lifetimeMilliseconds / 2)
  }

  private static func bytes(ofBase64 text: String.UTF8View) -> Data? {
    var characters = text.map { character in
      switch character {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: character
      }
    }
    while characters.count % 4 != 0 { characters.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: Data(characters))
  }

  private static func characters(_ payload: Int) -> Int { ((payload + codeBytes) * 4 + 2) / 3 }

  private static func number(_ bytes: Data) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

  private static func holder(_ parts: Data) -> DeviceIdentity? {
    guard let device = DeviceID(bytes: parts.prefix(16)), let player = PlayerID(bytes: parts.dropFirst(16).prefix(16)),
      let container = ContainerID(bytes: parts.dropFirst(32).prefix(16))
    else { return nil }
    return DeviceIdentity(
      device: device, player: player, container: container,
      app: AppID(bytes: Data(parts.dropFirst(48).prefix(AppID.byteCount))))
  }
}

/// What a token says that this server issued.
struct VerifiedToken: Hashable, Sendable {
  var identity: DeviceIdentity
  var issuedMilliseconds: Int64
  /// How many tokens the device had before this one.
  var renewals: UInt16
  /// Whether it is good for its renewal only: it is too old, or its secret was replaced twice.
  var isExpired: Bool
  /// Whether the device should get a new one.
  var isDue: Bool
}
#endif
