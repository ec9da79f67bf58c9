import Foundation
import TestSupport
import Testing

@testable import KeepsakeSync

@Suite("How the studio's commands ask a server")
struct HTTPStudioTests {
  @Test("a redirect is an answer that isn't the cloud's: neither the key nor the request goes elsewhere")
  func redirect() async throws {
    let away = try CannedServer { head, _ in
      head.contains("/admin/v1/")
        ? .http("302 Found", ["Location: /portal"], body: "moved")
        : .http("200 OK", body: "{}")
    }
    defer { away.stop() }
    let studio = HTTPStudio(url: away.url, key: "adm_key")
    let answer = try await studio.send("GET", ["players", "1"])
    #expect(answer.status == 302 && !answer.isCloud)
    let folder = try TemporaryFolder()
    let file = folder.url.appendingPathComponent("export.tar")
    #expect(try await studio.download(["players", "1", "export"], to: file).status == 302)
    #expect(!FileManager.default.fileExists(atPath: file.path))
    #expect(away.requests.count == 2 && !away.requests.contains { $0.contains("/portal") })
  }
}
