package import Foundation
import Synchronization

/// The body of an exchange, in which the frames of the contents follow the JSON. Inside the JSON they would be base64,
/// and a third longer.
///
///     4 bytes   the length of the JSON, big-endian
///     JSON      the message; a content has `size` in place of `bytes`
///     frames    one after the other, in the order of `contents`
///
/// The same message as plain JSON is equivalent; that form is for people and for small clients.
package enum ExchangeBody {
  package static let contentType = "application/vnd.keepsake.exchange"

  /// How many bytes the length of the JSON takes.
  package static let lengthBytes = 4

  /// Encodes an `ExchangeRequest` or `ExchangeResponse`.
  ///
  /// - Throws: What `JSONEncoder` throws.
  package static func encode(_ message: some Encodable) throws -> Data {
    let frames = FrameCollector()
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.userInfo[.frameCollector] = frames
    let json = try encoder.encode(message)
    guard let length = UInt32(exactly: json.count) else {
      throw EncodingError.invalidValue(
        json.count, .init(codingPath: [], debugDescription: "the message is too long for its length to be written"))
    }
    let all = frames.all
    var body = Data(capacity: lengthBytes + json.count + all.reduce(0) { $0 + $1.count })
    withUnsafeBytes(of: length.bigEndian) { body.append(contentsOf: $0) }
    body.append(json)
    for frame in all { body.append(frame) }
    return body
  }

  /// Decodes a body.
  ///
  /// - Throws: A `DecodingError` if it isn't a valid body, or has bytes that belong to no content.
  package static func decode<Message: Decodable>(_ type: Message.Type, from body: Data) throws -> Message {
    guard body.count >= lengthBytes else { throw damaged("the body ends before the length of its JSON") }
    let length = body.prefix(lengthBytes).reduce(0) { $0 << 8 | Int($1) }
    let rest = body.dropFirst(lengthBytes)
    guard length <= rest.count else {
      throw damaged("the JSON's declared length is \(length) bytes, but only \(rest.count) follow")
    }
    let frames = FrameReader(rest.dropFirst(length))
    let decoder = JSONDecoder()
    decoder.userInfo[.frameReader] = frames
    let message = try decoder.decode(type, from: Data(rest.prefix(length)))
    guard frames.isAtEnd else { throw damaged("bytes follow that belong to no content") }
    return message
  }

  /// Returns the JSON of a body; the whole body if it isn't a valid one.
  package static func json(of body: Data) -> Data {
    let length = body.prefix(lengthBytes).reduce(0) { $0 << 8 | Int($1) }
    guard body.count >= lengthBytes, length <= body.count - lengthBytes else { return body }
    return body.dropFirst(lengthBytes).prefix(length)
  }

  private static func damaged(_ description: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: description))
  }
}

extension CodingUserInfoKey {
  fileprivate static let frameCollector = named("keepsake.frameCollector")
  fileprivate static let frameReader = named("keepsake.frameReader")

  private static func named(_ name: String) -> Self {
    // No text makes this fail; the result is optional because the standard library declares it so.
    guard let key = Self(rawValue: name) else { preconditionFailure("a key of user info has no name") }
    return key
  }
}

/// Collects frames in the order in which a message names them.
private final class FrameCollector: Sendable {
  private let frames = Mutex<[Data]>([])

  var all: [Data] { frames.withLock { $0 } }

  func add(_ frame: Data) { frames.withLock { $0.append(frame) } }
}

/// Returns frames in the order in which a message names them.
private final class FrameReader: Sendable {
  private let rest: Mutex<Data>

  init(_ bytes: Data) { rest = Mutex(bytes) }

  var isAtEnd: Bool { rest.withLock { $0.isEmpty } }

  /// Returns the next `size` bytes; nil if there are fewer.
  func next(_ size: Int) -> Data? {
    rest.withLock { rest in
      guard size >= 0, size <= rest.count else { return nil }
      defer { rest = rest.dropFirst(size) }
      return Data(rest.prefix(size))
    }
  }
}

extension EncodedContent: Codable {
  private enum CodingKeys: String, CodingKey {
    case hash, length, base, bytes, size
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    hash = try container.decode(ContentHash.self, forKey: .hash)
    length = try container.decode(Int.self, forKey: .length)
    base = try container.decodeIfPresent(ContentHash.self, forKey: .base)
    guard let frames = decoder.userInfo[.frameReader] as? FrameReader else {
      bytes = try container.decode(Data.self, forKey: .bytes)
      return
    }
    let size = try container.decode(Int.self, forKey: .size)
    guard let frame = frames.next(size) else {
      throw DecodingError.dataCorruptedError(
        forKey: .size, in: container, debugDescription: "fewer than \(size) bytes are left for the frame")
    }
    bytes = frame
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(hash, forKey: .hash)
    try container.encode(length, forKey: .length)
    try container.encodeIfPresent(base, forKey: .base)
    if let frames = encoder.userInfo[.frameCollector] as? FrameCollector {
      try container.encode(bytes.count, forKey: .size)
      frames.add(bytes)
    } else {
      try container.encode(bytes, forKey: .bytes)
    }
  }
}
