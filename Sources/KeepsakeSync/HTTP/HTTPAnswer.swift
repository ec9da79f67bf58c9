import Foundation
import KeepsakeReplication

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What an HTTP answer means.
enum HTTPAnswer {
  private struct ErrorBody: Decodable {
    struct Details: Decodable {
      var code: String
      var message: String
      /// With `wrong_offset`.
      var received: Int?
      /// With `quota`.
      var limit: Int64?
      var used: Int64?
      var needed: Int64?
    }
    var error: Details
  }

  /// Throws unless the answer is a cloud's, and a success.
  static func check(_ response: HTTPURLResponse, body: Data = Data()) throws(TransportFailure) {
    let status = response.statusCode
    let isCloud = response.value(forHTTPHeaderField: "Keepsake-Protocol") != nil
    if isCloud, (200..<300).contains(status) { return }
    let details = details(body)
    let message = details.map { "\($0.message) (\(status), \($0.code))" } ?? "The server answered \(status)."
    // 507 is the server's full disk, which the operator sees to; a player's own limit is a 413.
    if status == 429 || status == 503 || status == 507 {
      throw TransportFailure(.server(retryAfterMilliseconds: retryAfter(response)), message)
    }
    if status >= 500 { throw TransportFailure(.server(retryAfterMilliseconds: nil), message) }
    guard isCloud else {
      // A hotel's portal, a wrong proxy: says nothing about what the cloud would answer.
      throw TransportFailure(.interrupted, "Something that isn't a Keepsake server answered \(status).")
    }
    switch status {
    case 401, 403: throw TransportFailure(.unauthorized, message)
    case 408: throw TransportFailure(.interrupted, message)
    default: throw TransportFailure(.rejected, message, quota: quota(status, details))
    }
  }

  /// What a refusal for want of room says; nil for any other, and for one that doesn't say how much there is.
  private static func quota(_ status: Int, _ details: ErrorBody.Details?) -> QuotaShortage? {
    guard status == 413, let details, details.code == "quota", let limit = details.limit, let used = details.used,
      let needed = details.needed
    else { return nil }
    return QuotaShortage(limit: limit, used: used, needed: needed)
  }

  /// The cloud's own word for what is wrong; nil if there is none.
  static func code(_ body: Data) -> String? { details(body)?.code }

  /// How much of an upload the cloud has, where an error says so.
  static func received(_ body: Data) -> Int? { details(body)?.received }

  private static func details(_ body: Data) -> ErrorBody.Details? {
    // An error without our body is still an error: its status speaks.
    try? JSONDecoder().decode(ErrorBody.self, from: body).error
  }

  static func retryAfter(_ response: HTTPURLResponse) -> Int64? {
    guard let text = response.value(forHTTPHeaderField: "Retry-After")?.trimmingCharacters(in: .whitespaces) else {
      return nil
    }
    if let seconds = Int64(text), seconds >= 0 {
      return min(seconds, SyncLimits.longestRetryAfterMilliseconds / 1000) * 1000
    }
    // The other form is a date. Whose clock it is by is uncertain, so a minute stands for all of them.
    return 60_000
  }

  static func decode<Value: Decodable>(_ type: Value.Type, _ body: Data) throws(TransportFailure) -> Value {
    do {
      return try JSONDecoder().decode(type, from: body)
    } catch {
      throw TransportFailure(.rejected, "The cloud's answer can't be read: \(error)")
    }
  }

  /// Reads the answer to an exchange: with its frames behind the JSON, or as plain JSON, as its content type says.
  static func exchange(_ answer: HTTPSession.Answer) throws(TransportFailure) -> ExchangeResponse {
    let type = answer.response.value(forHTTPHeaderField: "Content-Type") ?? ""
    guard type.lowercased().hasPrefix(ExchangeBody.contentType) else { return try decode(ExchangeResponse.self, answer.body) }
    do {
      return try ExchangeBody.decode(ExchangeResponse.self, from: answer.body)
    } catch {
      throw TransportFailure(.rejected, "The cloud's answer can't be read: \(error)")
    }
  }
}
