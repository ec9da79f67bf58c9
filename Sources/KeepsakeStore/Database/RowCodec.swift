import Crypto
import Foundation
import KeepsakeReplication

/// Converts values to the bodies of rows and back. A body is a checksum, followed by JSON, sealed as the store is. The
/// checksum covers the row's identity and the bytes after it.
///
/// SQLite doesn't notice a flipped bit inside a value, but the checksum does. Since it covers the row's identity
/// (`place`), it also reveals a body that was moved to another row.
struct RowCodec {
  /// Enough against accidents, which is all that a checksum without a key can protect against.
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

  /// Does the same, faster for most records.
  func encode(_ record: VersionRecord, place: String) throws -> Data {
    try body(of: PlainRecord.json(of: record) ?? encoder.encode(record), place: place)
  }

  /// Does the same, faster for most changes of versions.
  func encode(_ change: CloudChange, place: String) throws -> Data {
    try body(of: PlainRecord.json(of: change) ?? encoder.encode(change), place: place)
  }

  /// Decodes a row's body.
  ///
  /// - Throws: The errors of `json(in:place:strictly:)`, and `damaged` for JSON that can't be decoded.
  func decode<Value: Decodable>(_ type: Value.Type, from body: Data, place: String, strictly: Bool = false) throws
    -> Value
  {
    try decode(type, json: json(in: body, place: place, strictly: strictly), place: place)
  }

  /// Does the same, faster for most records.
  func decode(_ type: VersionRecord.Type, from body: Data, place: String, strictly: Bool = false) throws
    -> VersionRecord
  {
    let json = try json(in: body, place: place, strictly: strictly)
    return try PlainRecord.record(in: json) ?? decode(type, json: json, place: place)
  }

  /// Does the same, faster for most changes of versions.
  func decode(_ type: CloudChange.Type, from body: Data, place: String) throws -> CloudChange {
    let json = try json(in: body, place: place)
    return try PlainRecord.change(in: json) ?? decode(type, json: json, place: place)
  }

  private func decode<Value: Decodable>(_ type: Value.Type, json: Data, place: String) throws -> Value {
    do {
      return try decoder.decode(type, from: json)
    } catch {
      throw StoreError(.damaged, "the data of \(place) can't be decoded", cause: error)
    }
  }

  // MARK: Without values

  func body(of json: Data, place: String) throws -> Data {
    let payload = try seal.close(json, place: place)
    return Self.checksum(of: payload, place: place) + payload
  }

  /// Returns a body's JSON.
  ///
  /// - Throws: `damaged` if the checksum is wrong, `tampered` if the seal is. With `strictly`, a wrong seal throws
  ///   whatever the policy is.
  func json(in body: Data, place: String, strictly: Bool = false) throws -> Data {
    try seal.open(Self.payload(of: body, place: place), place: place, strictly: strictly)
  }

  /// Returns the bytes after the checksum, still sealed if the store is. Throws `damaged` if the checksum is wrong.
  @discardableResult static func payload(of body: Data, place: String) throws -> Data {
    let payload = body.dropFirst(checksumLength)
    guard body.count > checksumLength, isChecksum(body.prefix(checksumLength), of: payload, place: place) else {
      throw StoreError(.damaged, "the data of \(place) is damaged")
    }
    return payload
  }

  static func checksum(of payload: Data, place: String) -> Data {
    digest(of: payload, place: place).withUnsafeBytes { Data($0[..<checksumLength]) }
  }

  /// Compares without copying either: opening a store does this for every row.
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
