#if Cloud
import AsyncHTTPClient
import Foundation
import KeepsakeReplication
import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import TestSupport
import Testing

/// Sends any request to a server, valid or not.
struct Client: Sendable {
  private static let answerBytes = 512 << 20

  let url: URL
  let appKey: String
  var token: String?

  init(server: LiveServer, token: String? = nil) { self.init(url: server.url, appKey: server.appKey, token: token) }

  init(url: URL, appKey: String, token: String? = nil) {
    self.url = url
    self.appKey = appKey
    self.token = token
  }

  struct Answer: Sendable {
    var status: Int
    var body: Data
    var headers: [String: String]

    var json: [String: Any] { (try? JSONSerialization.jsonObject(with: body)) as? [String: Any] ?? [:] }
    var code: String? { (json["error"] as? [String: Any])?["code"] as? String }
  }

  struct Account: Decodable, Sendable {
    var device: DeviceID
    var player: Identifier<Never>
    var container: ContainerID
    var token: String
  }

  func call(
    _ method: String, _ path: String, headers: [String: String] = [:], body: Data? = nil
  ) async throws -> Answer {
    let url = try #require(URL(string: path, relativeTo: url))
    var request = HTTPClientRequest(url: url.absoluteString)
    request.method = HTTPMethod(rawValue: method)
    // Over one that is kept, a request may meet the end of the server that was there before.
    request.headers.add(name: "Connection", value: "close")
    if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
    for (name, value) in headers { request.headers.replaceOrAdd(name: name, value: value) }
    if let body { request.body = .bytes(body) }
    let answer = try await HTTPClient.shared.execute(
      request, timeout: .seconds(Int64(Patience.limit.components.seconds)))
    let received = try await answer.body.collect(upTo: Self.answerBytes)
    var fields: [String: String] = [:]
    for (name, value) in answer.headers { fields[name.lowercased()] = value }
    return Answer(status: Int(answer.status.code), body: Data(buffer: received), headers: fields)
  }

  func call(_ method: String, _ path: String, headers: [String: String] = [:], json: String) async throws -> Answer {
    try await call(method, path, headers: headers, body: Data(json.utf8))
  }

  func register(_ name: String = "A") async throws -> (Client, Account) {
    let answer = try await call(
      "POST", "/v1/devices", headers: ["Keepsake-App-Key": appKey], json: #"{"name": "\#(name)"}"#)
    try #require(answer.status == 201, "\(String(decoding: answer.body, as: UTF8.self))")
    let account = try JSONDecoder().decode(Account.self, from: answer.body)
    return (Client(url: url, appKey: appKey, token: account.token), account)
  }
}

extension LiveServer {
  var client: Client { Client(server: self) }
}
#endif
