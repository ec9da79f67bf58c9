import Foundation
import KeepsakePlatform
import KeepsakeReplication

/// Interprets HTTP responses.
enum HTTPAnswer {
  private struct ErrorBody: Decodable {
    struct Details: Decodable {
      var code: String
      var message: String
      /// Set with `wrong_offset`.
      var received: Int?
      /// Set with `quota`.
      var limit: Int64?
      var used: Int64?
      var needed: Int64?
    }
    var error: Details
  }

  /// Throws unless the response comes from a cloud, and is a success.
  static func check(_ response: HTTPURLResponse, body: Data = Data()) throws(TransportFailure) {
    let status = response.statusCode
    let isCloud = response.value(forHTTPHeaderField: "Keepsake-Protocol") != nil
    if isCloud, (200..<300).contains(status) { return }
    let details = details(body)
    let message =
      details.map { "\($0.message) (\(status), \($0.code))" } ?? "The server responded with status \(status)."
    // 507 means that the server's disk is full, which the operator has to solve; a player's own limit is a 413.
    if status == 429 || status == 503 || status == 507 {
      throw TransportFailure(.server(retryAfterMilliseconds: retryAfter(response)), message)
    }
    if status >= 500 { throw TransportFailure(.server(retryAfterMilliseconds: nil), message) }
    guard isCloud else {
      // A hotel's portal or a wrong proxy: this says nothing about how the cloud would respond.
      throw TransportFailure(.interrupted, "The response with status \(status) isn't from a Keepsake server.")
    }
    switch status {
    case 403 where details?.code == "not_entitled": throw TransportFailure(.notEntitled, message)
    // It was sent before this device knew that it may only read; the next exchange says so.
    case 403 where details?.code == "read_only":
      throw TransportFailure(.server(retryAfterMilliseconds: nil), message)
    case 401, 403: throw TransportFailure(.unauthorized, message)
    case 408: throw TransportFailure(.interrupted, message)
    default: throw TransportFailure(.rejected, message, quota: quota(status, details))
    }
  }

  /// Returns the numbers of a refusal for lack of room; nil for any other refusal, and for one without numbers.
  private static func quota(_ status: Int, _ details: ErrorBody.Details?) -> QuotaShortage? {
    guard status == 413, let details, details.code == "quota", let limit = details.limit, let used = details.used,
      let needed = details.needed
    else { return nil }
    return QuotaShortage(limit: limit, used: used, needed: needed)
  }

  /// Returns the cloud's own code for the error; nil if there is none.
  static func code(_ body: Data) -> String? { details(body)?.code }

  /// Returns whether the response is a cloud's to a request that it doesn't know, because it is of an earlier release.
  /// To be asked only about routes that refuse nothing else with this code.
  static func isUnknownRoute(_ answer: HTTPSession.Answer) -> Bool {
    answer.response.statusCode == 404 && answer.response.value(forHTTPHeaderField: "Keepsake-Protocol") != nil
      && code(answer.body) == "not_found"
  }

  /// Returns whether the cloud refuses the device for good. Any other refusal may be of a server that took the place of
  /// the device's own.
  static func isRetired(_ answer: HTTPSession.Answer) -> Bool {
    answer.response.statusCode == 403 && answer.response.value(forHTTPHeaderField: "Keepsake-Protocol") != nil
      && code(answer.body) == "retired"
  }

  /// Returns how much of an upload the cloud has, if an error says so.
  static func received(_ body: Data) -> Int? { details(body)?.received }

  private static func details(_ body: Data) -> ErrorBody.Details? {
    // An error without a body of ours is still an error, described by its status.
    try? JSONDecoder().decode(ErrorBody.self, from: body).error
  }

  static func retryAfter(_ response: HTTPURLResponse) -> Int64? {
    guard let text = response.value(forHTTPHeaderField: "Retry-After")?.trimmingCharacters(in: .whitespaces) else {
      return nil
    }
    if let seconds = Int64(text), seconds >= 0 {
      return min(seconds, SyncLimits.longestRetryAfterMilliseconds / 1000) * 1000
    }
    // The other form is a date. It is uncertain whose clock it is from, so a minute is used instead.
    return 60_000
  }

  static func decode<Value: Decodable>(_ type: Value.Type, _ body: Data) throws(TransportFailure) -> Value {
    do {
      return try JSONDecoder().decode(type, from: body)
    } catch {
      throw TransportFailure(.rejected, "The cloud's response can't be read: \(ErrorReason.text(error))")
    }
  }

  /// Decodes the response to an exchange: with its frames after the JSON, or as plain JSON, depending on its content
  /// type.
  static func exchange(_ answer: HTTPSession.Answer) throws(TransportFailure) -> ExchangeResponse {
    let type = answer.response.value(forHTTPHeaderField: "Content-Type") ?? ""
    guard type.lowercased().hasPrefix(ExchangeBody.contentType) else {
      return try decode(ExchangeResponse.self, answer.body)
    }
    do {
      return try ExchangeBody.decode(ExchangeResponse.self, from: answer.body)
    } catch {
      throw TransportFailure(.rejected, "The cloud's response can't be read: \(ErrorReason.text(error))")
    }
  }
}
