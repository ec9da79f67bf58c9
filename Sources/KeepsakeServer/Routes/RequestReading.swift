#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication
import NIOCore

extension ServerGate {
  /// Reads a JSON body of at most `limit` bytes. Throws an `APIError` that states what is wrong with it.
  func json<Value: Decodable & Sendable>(
    _ type: Value.Type, of request: Request, limit: Int, work: RequestWork? = nil
  ) async throws -> Value {
    try await decode(request, limit: limit, work: work) { try JSONDecoder().decode(type, from: $0) }
  }

  /// Reads an exchange: JSON, or JSON followed by its frames, depending on the content type.
  func exchange(of request: Request, limit: Int, work: RequestWork) async throws -> ExchangeRequest {
    guard Request.names(ExchangeBody.contentType, in: request.headers[.contentType]) else {
      return try await json(ExchangeRequest.self, of: request, limit: limit, work: work)
    }
    return try await decode(request, limit: limit, lengthBytes: ExchangeBody.lengthBytes, work: work) {
      try ExchangeBody.decode(ExchangeRequest.self, from: $0)
    }
  }
}

extension Request {
  /// Whether the sender of an exchange accepts a response with its frames after the JSON.
  var wantsFrames: Bool { Self.names(ExchangeBody.contentType, in: headers[.accept]) }

  /// Whether a list of media types contains `type`, with any parameters.
  fileprivate static func names(_ type: String, in list: String?) -> Bool {
    guard let list else { return false }
    // As devices write it: by far the most.
    if list == type { return true }
    return list.split(separator: ",").contains { item in
      item.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased() == type
    }
  }

  /// Runs `decode`, and turns what it throws into an `APIError` that states what is wrong with the body.
  static func reading<Value>(_ bytes: Data, _ decode: (Data) throws -> Value) throws -> Value {
    do {
      return try decode(bytes)
    } catch let error as DecodingError {
      throw APIError(.badRequest, .badJSON, Self.describe(error))
    } catch let error as ExchangeError {
      // Enough could be read to see that the rest is of another protocol.
      throw error
    } catch let error as ServerError {
      throw error
    } catch {
      throw APIError(.badRequest, .badJSON, "The body isn't JSON.")
    }
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
