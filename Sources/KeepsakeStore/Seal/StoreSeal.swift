import Crypto
import Foundation
import KeepsakeReplication

/// How the rows and frames of an open store are sealed and opened.
///
/// A sealed row consists of the checksum that every row has, a byte for its form, the id of the key, and then the HMAC
/// and the plain bytes, or a ChaChaPoly box. The checksum is outside the seal, so that disk damage can be distinguished
/// from tampering, and so that tools without the secret can still detect damage.
struct StoreSeal: Sendable {
  /// The first byte of a sealed row or frame. JSON and zstd begin with other bytes.
  enum Form: UInt8 {
    case signed = 1
    case boxed = 2
  }
  static let headBytes = 1 + SealKey.idBytes
  private static let macBytes = 32

  let kind: Seal.Kind
  let policy: Seal.Policy
  /// The one used for sealing comes first, then others that are still accepted. Empty for a tool without the secret.
  let keys: [SealKey]
  /// Where `flag` reports what it accepts.
  let findings: SealFindings
  /// For saves that are exported as files.
  let files: FileSeal

  static let none = StoreSeal(kind: .none, policy: .quarantine, keys: [])

  init(
    kind: Seal.Kind, policy: Seal.Policy, keys: [SealKey], findings: SealFindings = SealFindings(),
    files: FileSeal = .none
  ) {
    self.files = files
    self.kind = kind
    self.policy = policy
    self.keys = keys
    self.findings = findings
  }

  /// Returns the first bytes of rows and frames that needn't be sealed again.
  func currentHead() throws -> Data {
    let form: Form = kind == .sealed ? .boxed : .signed
    return try Data([form.rawValue]) + currentKey().id
  }

  private func currentKey() throws -> SealKey {
    guard let key = keys.first else {
      throw StoreError(.wrongSecret, "the store is \(kind.rawValue): without its secret nothing can be written")
    }
    return key
  }

  // MARK: Rows

  func close(_ json: Data, place: String) throws -> Data {
    switch kind {
    case .none: return json
    case .signed:
      let key = try currentKey()
      let code = HMAC<SHA256>.authenticationCode(for: Self.signedBytes(json, place), using: key.signing)
      return try currentHead() + Data(code) + json
    case .sealed:
      let box = try ChaChaPoly.seal(json, using: currentKey().rows, authenticating: Data(place.utf8))
      return try currentHead() + box.combined
    }
  }

  /// Returns the plain bytes. If they don't verify, throws `tampered`, or only records that if the policy is `flag` and
  /// they can be read.
  ///
  /// - Parameter strictly: Throws whatever the policy is.
  func open(_ payload: Data, place: String, strictly: Bool = false) throws -> Data {
    let (json, isProven) = try verify(payload, place: place)
    if isProven { return json }
    let finding = SealFinding(place: place, outcome: .used)
    guard policy == .flag, !strictly else { throw finding.error }
    findings.note(finding)
    return json
  }

  /// Returns the row's plain bytes, and whether they were written with the secret. Throws `tampered` if they can't even
  /// be read.
  private func verify(_ payload: Data, place: String) throws -> (json: Data, isProven: Bool) {
    guard let form = payload.first.flatMap(Form.init(rawValue:)) else { return (payload, kind == .none) }
    let rest = payload.dropFirst(Self.headBytes)
    let key = key(of: payload)
    switch form {
    case .signed:
      guard payload.count > Self.headBytes + Self.macBytes else {
        throw SealFinding(place: place, outcome: .setAside).error
      }
      let json = rest.dropFirst(Self.macBytes)
      // Can't be checked without the secret. The code that opens a store without its secret reports that.
      if kind == .signed, keys.isEmpty { return (json, true) }
      guard kind == .signed, let key else { return (json, false) }
      let isProven = HMAC<SHA256>.isValidAuthenticationCode(
        rest.prefix(Self.macBytes), authenticating: Self.signedBytes(json, place), using: key.signing)
      return (json, isProven)
    case .boxed:
      if keys.isEmpty {
        throw StoreError(.wrongSecret, "\(place) is encrypted: it can't be read without the game's secret")
      }
      guard kind == .sealed, let key else { throw SealFinding(place: place, outcome: .setAside).error }
      do {
        return (
          try ChaChaPoly.open(.init(combined: rest), using: key.rows, authenticating: Data(place.utf8)), true
        )
      } catch {
        throw SealFinding(place: place, outcome: .setAside).error
      }
    }
  }

  private func key(of payload: Data) -> SealKey? {
    let id = payload.dropFirst().prefix(SealKey.idBytes)
    return keys.first { $0.id == id }
  }

  private static func signedBytes(_ json: Data, _ place: String) -> Data {
    var bytes = Data(capacity: 4 + place.utf8.count + json.count)
    withUnsafeBytes(of: UInt32(place.utf8.count).bigEndian) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: place.utf8)
    bytes.append(json)
    return bytes
  }

  // MARK: Frames

  /// Returns the stored form of a content's frame. Signed stores leave frames as they are: the content's hash is in a
  /// signed row.
  func close(frame: Data, of hash: ContentHash, length: Int, base: ContentHash?) throws -> Data {
    guard kind == .sealed else { return frame }
    let box = try ChaChaPoly.seal(
      frame, using: currentKey().frames, authenticating: Self.frameContext(hash, length, base))
    return try currentHead() + box.combined
  }

  /// Returns the original frame. Throws `damaged`: a frame has no checksum of its own to distinguish damage from
  /// tampering.
  func open(frame: Data, of hash: ContentHash, length: Int, base: ContentHash?) throws -> Data {
    guard kind == .sealed else { return frame }
    if keys.isEmpty {
      throw StoreError(.wrongSecret, "the content \(hash) is encrypted: it can't be read without the game's secret")
    }
    let damage = StoreError(.damaged, "the content \(hash) is damaged or was changed: its seal doesn't verify")
    guard frame.first == Form.boxed.rawValue, let key = key(of: frame) else { throw damage }
    do {
      return try ChaChaPoly.open(
        .init(combined: frame.dropFirst(Self.headBytes)), using: key.frames,
        authenticating: Self.frameContext(hash, length, base))
    } catch {
      throw damage
    }
  }

  private static func frameContext(_ hash: ContentHash, _ length: Int, _ base: ContentHash?) -> Data {
    var context = hash.bytes
    withUnsafeBytes(of: Int64(length).bigEndian) { context.append(contentsOf: $0) }
    if let base { context.append(base.bytes) }
    return context
  }
}
