import Crypto
import Foundation

/// Turns values into the bodies of rows and back: JSON, sealed as the store is, behind a checksum over the row's place and what
/// follows.
///
/// SQLite doesn't notice a flipped bit inside a value. The checksum does, and since it covers the row's place, it notices too
/// when a body stands under another name.
struct RowCodec {
  /// Enough against accidents, which is all that a checksum without a key is good for.
  static let checksumLength = 8

  private let seal: StoreSeal
  private let encoder = JSONEncoder()
  private let decoder = JSONDecoder()

  init(seal: StoreSeal) {
    self.seal = seal
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  }

  func encode(_ value: some Encodable, place: String) throws -> Data {
    try body(of: encoder.encode(value), place: place)
  }

  /// Throws as `json(in:place:strictly:)`, and `damaged` for what can't be understood.
  func decode<Value: Decodable>(_ type: Value.Type, from body: Data, place: String, strictly: Bool = false) throws -> Value {
    let json = try json(in: body, place: place, strictly: strictly)
    do {
      return try decoder.decode(type, from: json)
    } catch {
      throw StoreError(.damaged, "what is kept of \(place) can't be understood", cause: error)
    }
  }

  // MARK: Without values

  func body(of json: Data, place: String) throws -> Data {
    let payload = try seal.close(json, place: place)
    return Self.checksum(of: payload, place: place) + payload
  }

  /// Throws `damaged` if the checksum is wrong, `tampered` if the seal is; the latter in any case where `strictly`.
  func json(in body: Data, place: String, strictly: Bool = false) throws -> Data {
    try seal.open(Self.payload(of: body, place: place), place: place, strictly: strictly)
  }

  /// What stands behind the checksum, sealed as it may be. Throws `damaged` if the checksum is wrong.
  @discardableResult static func payload(of body: Data, place: String) throws -> Data {
    let payload = body.dropFirst(checksumLength)
    guard body.count > checksumLength, isChecksum(body.prefix(checksumLength), of: payload, place: place) else {
      throw StoreError(.damaged, "what is kept of \(place) is damaged")
    }
    return payload
  }

  static func checksum(of payload: Data, place: String) -> Data {
    digest(of: payload, place: place).withUnsafeBytes { Data($0[..<checksumLength]) }
  }

  /// Without a copy of either: at each opening it is asked of every row.
  private static func isChecksum(_ checksum: Data, of payload: Data, place: String) -> Bool {
    digest(of: payload, place: place).withUnsafeBytes { digest in
      checksum.withUnsafeBytes { $0.elementsEqual(digest[..<checksumLength]) }
    }
  }

  private static func digest(of payload: Data, place: String) -> SHA256.Digest {
    var hash = SHA256()
    var place = place + "\0"
    place.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
    payload.withUnsafeBytes { hash.update(bufferPointer: $0) }
    return hash.finalize()
  }
}
