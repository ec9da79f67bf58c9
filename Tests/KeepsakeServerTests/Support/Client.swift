#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeSync

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Sends any request to a server, valid or not.
struct Client: Sendable {
  private static let session = HTTPSession(idleSeconds: Double(Patience.limit.components.seconds))
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
    var request = URLRequest(url: url)
    request.httpMethod = method
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    let answer = try await Self.session.send(request, body: body, limit: Self.answerBytes)
    var fields: [String: String] = [:]
    for (name, value) in answer.response.allHeaderFields { fields["\(name)".lowercased()] = "\(value)" }
    return Answer(status: answer.response.statusCode, body: answer.body, headers: fields)
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
