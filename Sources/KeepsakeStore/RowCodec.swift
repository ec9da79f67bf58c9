import Crypto
import Foundation

/// Turns values into the bodies of rows and back: JSON behind a checksum over the row's place and the JSON.
///
/// SQLite doesn't notice a flipped bit inside a value. The checksum does, and since it covers the row's place, it notices too
/// when a body stands under another name.
struct RowCodec {
  /// Enough against accidents, which is all that a checksum without a key is good for.
  private static let checksumLength = 8

  private let encoder = JSONEncoder()
  private let decoder = JSONDecoder()

  init() { encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes] }

  func encode(_ value: some Encodable, place: String) throws -> Data {
    let json = try encoder.encode(value)
    return Self.checksum(of: json, place: place) + json
  }

  func decode<Value: Decodable>(_ type: Value.Type, from body: Data, place: String) throws -> Value {
    let json = try json(in: body, place: place)
    do {
      return try decoder.decode(type, from: json)
    } catch {
      throw StoreError(.damaged, "what is kept of \(place) can't be understood", cause: error)
    }
  }

  /// What a body holds, not decoded. Throws `damaged` if the checksum is wrong.
  func json(in body: Data, place: String) throws -> Data {
    let json = body.dropFirst(Self.checksumLength)
    guard body.count > Self.checksumLength,
      body.prefix(Self.checksumLength) == Self.checksum(of: json, place: place)
    else { throw StoreError(.damaged, "what is kept of \(place) is damaged") }
    return json
  }

  private static func checksum(of json: Data, place: String) -> Data {
    var hash = SHA256()
    hash.update(data: Data(place.utf8))
    hash.update(data: Data([0]))
    hash.update(data: json)
    return Data(hash.finalize().prefix(checksumLength))
  }
}
