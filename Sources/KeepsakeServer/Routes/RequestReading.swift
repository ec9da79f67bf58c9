#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication
import NIOCore

extension Request {
  /// Reads a JSON body of at most `limit` bytes. Throws an `APIError` that states what is wrong with it.
  func json<Value: Decodable>(_ type: Value.Type, limit: Int) async throws -> Value {
    // The decoder itself refuses nesting deeper than 512.
    try await read(limit: limit) { try JSONDecoder().decode(type, from: $0) }
  }

  /// Reads an exchange: JSON, or JSON followed by its frames, depending on the content type.
  func exchange(limit: Int) async throws -> ExchangeRequest {
    guard Self.names(ExchangeBody.contentType, in: headers[.contentType]) else {
      return try await json(ExchangeRequest.self, limit: limit)
    }
    return try await read(limit: limit) { try ExchangeBody.decode(ExchangeRequest.self, from: $0) }
  }

  /// Whether the sender of an exchange accepts a response with its frames after the JSON.
  var wantsFrames: Bool { Self.names(ExchangeBody.contentType, in: headers[.accept]) }

  /// Whether a list of media types contains `type`, with any parameters.
  private static func names(_ type: String, in list: String?) -> Bool {
    (list ?? "").split(separator: ",").contains { item in
      item.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased() == type
    }
  }

  private func read<Value>(limit: Int, _ decode: (Data) throws -> Value) async throws -> Value {
    let bytes = try await body(limit: limit)
    do {
      return try decode(bytes)
    } catch let error as DecodingError {
      throw APIError(.badRequest, .badJSON, Self.describe(error))
    } catch let error as ExchangeError {
      // Enough could be read to see that the rest is of another protocol.
      throw error
    } catch {
      throw APIError(.badRequest, .badJSON, "The body isn't JSON.")
    }
  }

  /// Reads a whole body of at most `limit` bytes.
  func body(limit: Int) async throws -> Data {
    let declared = headers[.contentLength].flatMap { Int($0) }
    if let declared, declared > limit {
      throw APIError(
        .contentTooLarge, .tooLarge, "The body has \(declared) bytes; this request can have at most \(limit).")
    }
    let buffer = try await body.collect(upTo: limit)
    if let declared, declared != buffer.readableBytes {
      throw APIError(.badRequest, .badRequest, "The body ended early.")
    }
    return Data(buffer.readableBytesView)
  }

  private static func describe(_ error: DecodingError) -> String {
    func place(_ context: DecodingError.Context) -> String {
      let path = context.codingPath.prefix(20).map { $0.intValue.map(String.init) ?? String($0.stringValue.prefix(60)) }
      return path.isEmpty ? "the body" : "\"" + path.joined(separator: ".") + "\""
    }
    return switch error {
    case .keyNotFound(let key, let context): "In \(place(context)), \"\(key.stringValue.prefix(60))\" is missing."
    case .typeMismatch(_, let context), .valueNotFound(_, let context): "\(place(context)) has the wrong type."
    case .dataCorrupted(let context): "\(place(context)) can't be read: \(context.debugDescription.prefix(300))"
    @unknown default: "The body can't be read."
    }
  }
}
#endif
