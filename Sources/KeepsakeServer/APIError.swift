#if Cloud
import Foundation
import HTTPTypes
import Hummingbird

/// An answer that says no: the status for machines in between, a code for ours, a sentence for people.
///
/// In JSON: `{"error": {"code": "...", "message": "..."}}`.
struct APIError: Error, Sendable {
  enum Code: String, Sendable {
    case badRequest = "bad_request"
    case badJSON = "bad_json"
    case badExchange = "bad_exchange"
    case unsupportedProtocol = "unsupported_protocol"
    case unauthorized
    case badAppKey = "bad_app_key"
    case notFound = "not_found"
    case contentMissing = "content_missing"
    case baseMissing = "base_missing"
    case codeUnknown = "code_unknown"
    case methodNotAllowed = "method_not_allowed"
    case tooLarge = "too_large"
    case encodingRefused = "encoding_refused"
    case tooManyGuesses = "too_many_guesses"
    case tooManyStreams = "too_many_streams"
    case busy
    case storageFull = "storage_full"
    case server
  }
  var status: HTTPResponse.Status
  var code: Code
  var message: String
  var retryAfterSeconds: Int?

  init(_ status: HTTPResponse.Status, _ code: Code, _ message: String, retryAfterSeconds: Int? = nil) {
    self.status = status
    self.code = code
    self.message = message
    self.retryAfterSeconds = retryAfterSeconds
  }

  private struct Body: Encodable {
    struct Details: Encodable {
      var code: String
      var message: String
    }
    var error: Details
  }

  func response() throws -> Response {
    var response = try Response(json: Body(error: .init(code: code.rawValue, message: message)), status: status)
    if let retryAfterSeconds { response.headers[.retryAfter] = String(retryAfterSeconds) }
    return response
  }
}

extension Response {
  /// An answer in JSON, its keys sorted.
  init(json value: some Encodable, status: HTTPResponse.Status = .ok) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let bytes = try encoder.encode(value)
    self.init(
      status: status, headers: [.contentType: "application/json"], body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }
}
#endif
