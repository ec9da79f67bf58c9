import Foundation
import KeepsakePlatform
package import KeepsakeReplication

/// The connection to a Keepsake server over HTTP.
package final class HTTPTransport: Transport {
  private let credentials: RenewableCredentials
  /// What was sent and received so far.
  package let traffic: TrafficCounter
  private let requests: HTTPSession
  private let contents: HTTPContents
  private let streams: HTTPEvents

  /// - Parameters:
  ///   - renewal: How new tokens are stored; nil if the token stays what it is.
  ///   - eventIdleSeconds: How long an event stream may be silent before it counts as dead.
  package convenience init(
    _ credentials: CloudCredentials, renewal: CredentialsRenewal? = nil,
    eventIdleSeconds: Double = SyncLimits.eventIdleSeconds
  ) {
    self.init(credentials, renewal: renewal, eventIdleSeconds: eventIdleSeconds, carrier: .preferred)
  }

  init(
    _ credentials: CloudCredentials, renewal: CredentialsRenewal? = nil, eventIdleSeconds: Double, carrier: HTTPCarrier
  ) {
    let credentials = RenewableCredentials(credentials, renewal: renewal)
    self.credentials = credentials
    traffic = TrafficCounter()
    requests = HTTPSession(
      idleSeconds: SyncLimits.idleSeconds, traffic: traffic, credentials: credentials, carrier: carrier)
    contents = HTTPContents(credentials, requests)
    streams = HTTPEvents(credentials, requests, traffic: traffic, idleSeconds: eventIdleSeconds, carrier: carrier)
  }

  package func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
    let body: Data
    do {
      body = try ExchangeBody.encode(request)
    } catch {
      throw TransportFailure(.rejected, "The request can't be written: \(ErrorReason.text(error))")
    }
    var message = self.request("POST", "v1/exchange")
    message.setValue(ExchangeBody.contentType, forHTTPHeaderField: "Content-Type")
    message.setValue("\(ExchangeBody.contentType), application/json", forHTTPHeaderField: "Accept")
    let answer = try await requests.send(message, body: body, limit: SyncLimits.answerBytes)
    try HTTPAnswer.check(answer.response, body: answer.body)
    let response = try HTTPAnswer.exchange(answer)
    await credentials.didReceive(answer.response)
    if response.restart { contents.cloudDidRestart() } else { contents.didReceive(response.quota) }
    return response
  }

  package func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) {
    try await contents.put(content, progress: progress)
  }

  package func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent? {
    try await contents.get(hash, progress: progress)
  }

  package func devices(having versions: [VersionID]) async throws(TransportFailure) -> [AccountDevice]? {
    var message = request("GET", "v1/devices")
    message.url?.append(queryItems: [
      URLQueryItem(name: "versions", value: versions.map(\.description).joined(separator: ","))
    ])
    let answer = try await requests.send(message, limit: SyncLimits.deviceBytes)
    try HTTPAnswer.check(answer.response, body: answer.body)
    let devices = try HTTPAnswer.decode(DeviceList.self, answer.body).devices
    // An older server ignores the query, which doesn't mean that nobody has the versions.
    return devices.allSatisfy { $0.has != nil } ? devices : nil
  }

  package func leave(with offer: WalletOffer) async throws(TransportFailure) -> LeavingAnswer {
    var message = request("POST", "v1/wallet/leave")
    message.setValue("application/json", forHTTPHeaderField: "Content-Type")
    let body = try HTTPRequests.encode(LeavingRequest(offer: offer))
    let answer = try await requests.send(message, body: body, limit: SyncLimits.leavingBytes)
    if HTTPAnswer.isRetired(answer) { return .retired }
    try HTTPAnswer.check(answer.response, body: answer.body)
    return .reply(try HTTPAnswer.decode(LeavingResponse.self, answer.body).reply)
  }

  package func events(
    since cursor: @escaping @Sendable () async -> Cursor?
  ) -> AsyncThrowingStream<CloudEvent, any Error> {
    streams.events(since: cursor) { [contents] in contents.cloudDidRestart() }
  }

  private func request(_ method: String, _ path: String) -> URLRequest {
    HTTPRequests.request(method, credentials.current, path)
  }
}

/// What all requests have in common.
enum HTTPRequests {
  static func request(_ method: String, _ base: URL, _ path: String) -> URLRequest {
    var request = URLRequest(url: base.appendingPathComponent(path))
    request.httpMethod = method
    request.timeoutInterval = SyncLimits.idleSeconds
    // Foundation's own offer of gzip would only cost time: what is large is compressed already.
    request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    return request
  }

  /// Creates a request by this device.
  static func request(_ method: String, _ credentials: CloudCredentials, _ path: String) -> URLRequest {
    var request = request(method, credentials.url, path)
    request.setValue(authorization(credentials), forHTTPHeaderField: "Authorization")
    return request
  }

  static func authorization(_ credentials: CloudCredentials) -> String { "Bearer " + credentials.token }

  static func encode(_ value: some Encodable) throws(TransportFailure) -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return try encoder.encode(value)
    } catch {
      throw TransportFailure(.rejected, "The request can't be written as JSON: \(ErrorReason.text(error))")
    }
  }
}
