#if Cloud
import Foundation
import Hummingbird
import NIOCore

extension Request {
  /// Reads a JSON body of at most `limit` bytes. Throws an `APIError` that says what is wrong with it.
  func json<Value: Decodable>(_ type: Value.Type, limit: Int) async throws -> Value {
    let bytes = try await body(limit: limit)
    do {
      // The decoder itself refuses nesting deeper than 512.
      return try JSONDecoder().decode(type, from: bytes)
    } catch let error as DecodingError {
      throw APIError(.badRequest, .badJSON, Self.describe(error))
    } catch {
      throw APIError(.badRequest, .badJSON, "The body isn't JSON.")
    }
  }

  /// Reads a body of at most `limit` bytes, all of it.
  func body(limit: Int) async throws -> Data {
    let declared = headers[.contentLength].flatMap { Int($0) }
    if let declared, declared > limit {
      throw APIError(.contentTooLarge, .tooLarge, "The body has \(declared) bytes; this request takes \(limit).")
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
