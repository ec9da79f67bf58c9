#if Cloud
import Foundation
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// Compares docs/openapi.yaml with the server's routes and error codes. `Scripts/check-openapi.sh` compares it with
/// what a running server answers.
@Suite struct OpenAPITests {
  static func document(_ name: String = "openapi") throws -> [Substring] {
    try String(contentsOf: Repository.root.appending(path: "docs/\(name).yaml"), encoding: .utf8).split(
      separator: "\n")
  }

  /// The routes of the document, such as `GET /health`.
  static func described(_ name: String = "openapi") throws -> Set<String> {
    var found: Set<String> = []
    var (isInPaths, path) = (false, "")
    for line in try document(name) {
      if let top = line.wholeMatch(of: /([a-z]+):.*/) { isInPaths = top.1 == "paths" }
      guard isInPaths else { continue }
      if let match = line.wholeMatch(of: /\s{2}(\/[^ ]*):/) { path = String(match.1) }
      if let match = line.wholeMatch(of: /\s{4}(get|put|post|delete|patch|head|options):/) {
        found.insert("\(match.1.uppercased()) \(path)")
      }
    }
    return found
  }

  @Test("docs/openapi.yaml has every route of the server, and no other")
  func routes() async throws {
    try await TemporaryFolder.with { folder in
      let service = try await CloudService(
        configuration: ServerConfiguration(data: folder, port: 0), logger: Logger(label: "keepsake.test"),
        stopSwitch: StopSwitch(), onRunning: { _ in })
      let routes = Set(service.routes.map { "\($0.method) \($0.path)" })
      #expect(routes.count > 15)
      #expect(try Self.described() == routes)
    }
  }

  @Test("docs/openapi-admin.yaml has every route for the studio, and no other")
  func adminRoutes() async throws {
    try await TemporaryFolder.with { folder in
      var configuration = ServerConfiguration(data: folder, port: 0)
      (configuration.adminPort, configuration.saves) = (0, TextReader())
      let service = try await CloudService(
        configuration: configuration, logger: Logger(label: "keepsake.test"), stopSwitch: StopSwitch(),
        onRunning: { _ in })
      let routes = Set(try #require(service.admin).routes.described.map { "\($0.method) \($0.path)" })
      #expect(routes.count > 15)
      #expect(try Self.described("openapi-admin") == routes)
    }
  }

  @Test("an address refuses the methods that it doesn't have with 405 and a list of those that it has")
  func otherMethods() async throws {
    try await LiveServer.with { server in
      for (method, path, allowed) in [
        ("PATCH", "/health", "GET"), ("QUERY", "/v1/export", "GET"),
        ("DELETE", "/v1/devices", "GET, POST"), ("GET", "/v1/bank/release", "POST"),
        ("POST", "/v1/contents/\(String(repeating: "0", count: 64))", "GET, PUT"),
      ] {
        let answer = try await server.client.call(method, path)
        #expect(answer.status == 405 && answer.code == "method_not_allowed", "\(method) \(path)")
        #expect(answer.headers["allow"] == allowed && answer.headers["keepsake-protocol"] == "1")
      }
      #expect(try await server.client.call("GET", "/v1/nothing").status == 404)
    }
  }

  @Test("docs/openapi.yaml has every error code of the server, and no other")
  func codes() throws {
    let lines = try Self.document()
    let start = try #require(lines.firstIndex { $0.wholeMatch(of: /\s+code:/) != nil })
    let listed = lines[start...].dropFirst(2).prefix { $0.contains("  - ") }
    let codes = listed.map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " -")) }
    #expect(Set(codes) == Set(APIError.Code.allCases.map(\.rawValue)))
  }
}
#endif
