#if Cloud
import Foundation
import HTTPTypes
import Logging
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("What the log says about refused requests")
struct RefusalLogTests {
  private let log = RecordedLog()
  private let now = Shared<Int64>(1_000_000)
  private let registry = PrometheusRegistry()

  private func refusals(_ level: Logger.Level = .info) -> RefusalLog {
    var logger = log.logger
    logger.logLevel = level
    return RefusalLog(metrics: ServerMetrics(registry), logger: logger) { [now] in now.value }
  }

  private static let refusal = APIError(.unauthorized, .unauthorized, "No.")
  private static let circumstances = RefusalLog.Circumstances(
    method: "GET", route: "/v1/devices/{device}", peer: "4:127.0.0.1")

  @Test("of a kind, five lines are logged in a minute, then the number of those left out; each kind counts by itself")
  func sampling() {
    let refusals = refusals()
    for _ in 0..<100 { refusals.refused(Self.refusal, Self.circumstances) }
    refusals.refused(.retired, Self.circumstances)
    #expect(log.lines.value.count == 6)
    #expect(
      log.lines.value[0].metadata == [
        "kind": "unauthorized", "status": "401", "method": "GET", "route": "/v1/devices/{device}",
        "peer": "4:127.0.0.1",
      ])
    refusals.sweep()
    #expect(log.lines.value.count == 6, "the minute isn't over")
    now.value += RefusalLog.windowMilliseconds
    refusals.refused(Self.refusal, Self.circumstances)
    #expect(log.lines.value.dropFirst(6).map(\.metadata["leftOut"]) == ["95", nil])
    refusals.sweep(all: true)
    #expect(log.lines.value.count == 8, "nothing was left out since")
    #expect(registry.text().contains("keepsake_refusals_total{code=\"unauthorized\"} 101\n"))
  }

  @Test("what a limit refuses is logged once: as its kind, and not once more as the response")
  func limit() {
    let refusals = refusals()
    let error = refusals.count(
      .heavyQueue, from: PeerAddress("203.0.113.5"), as: APIError(.serviceUnavailable, .busy, "Wait."))
    refusals.refused(error, Self.circumstances)
    #expect(log.lines.value.map(\.metadata["kind"]) == ["heavy_queue"])
    #expect(refusals.counts == [.heavyQueue: 1])
    let text = registry.text()
    #expect(text.contains("keepsake_limited_total{kind=\"heavy_queue\"} 1"))
    #expect(text.contains("keepsake_refusals_total{code=\"busy\"} 1"))
    refusals.refused(APIError(.serviceUnavailable, .busy, "Wait."), Self.circumstances)
    #expect(log.lines.value.map(\.metadata["kind"]) == ["heavy_queue", "busy"], "without a limit it has a line")
  }

  @Test("a clock that is set back begins a new minute")
  func clockSetBack() {
    let refusals = refusals()
    for _ in 0..<10 { refusals.refused(Self.refusal, Self.circumstances) }
    now.value -= 500_000
    refusals.refused(Self.refusal, Self.circumstances)
    #expect(log.lines.value.map(\.metadata["leftOut"]) == [nil, nil, nil, nil, nil, "5", nil])
  }

  @Test("what is below the level is counted and not logged")
  func level() {
    let refusals = refusals(.info)
    for _ in 0..<20 { refusals.refused(APIError(.notFound, .contentMissing, "Gone."), Self.circumstances) }
    refusals.sweep(all: true)
    #expect(log.lines.value.isEmpty)
    #expect(registry.text().contains("keepsake_refusals_total{code=\"content_missing\"} 20\n"))
  }

  @Test("a running server logs refusals with the route's template, and never a token, a key, a code or an id")
  func secrets() async throws {
    try await TemporaryFolder.with { folder in
      let log = RecordedLog()
      let server = try await LiveServer.start(data: folder, logger: log.logger)
      let (client, account) = try await server.client.register("Nameless")
      let code = try #require(try await client.call("POST", "/v1/pairing").json["code"] as? String)
      var forged = client
      forged.token = String(account.token.reversed())
      _ = try await forged.call("DELETE", "/v1/devices/\(account.device)")
      let hash = String(repeating: "ab", count: 32)
      _ = try await client.call("GET", "/v1/contents/\(hash)")
      _ = try await client.call("GET", "/nowhere/\(hash)?token=\(account.token)")
      for key in ["a-wrong-app-key", server.appKey] {
        _ = try await client.call(
          "POST", "/v1/pairing/join", headers: ["Keepsake-App-Key": key], json: #"{"code": "WRONGCDE"}"#)
      }
      _ = try await client.call("POST", "/v1/exchange", json: #"{"secret-save": "#)
      try await server.stop()
      let text = log.lines.value.map(\.text).joined(separator: "\n")
      for kind in ["unauthorized", "content_missing", "not_found", "bad_app_key", "code_unknown", "bad_json"] {
        #expect(text.contains("\"kind\": \(kind)") || text.contains("\"kind\": \"\(kind)\""), "\(kind)\n\(text)")
      }
      #expect(text.contains("/v1/devices/{device}"))
      let device = String(describing: account.device)
      let secrets = [
        account.token, forged.token ?? "", server.appKey, "a-wrong-app-key", code, "WRONGCDE", hash, device,
        "secret-save", "Nameless", "\(account.container)",
      ]
      for secret in secrets { #expect(!text.contains(secret), "\(secret)") }
    }
  }

  @Test("a log in JSON has one object on each line, whatever is in it")
  func json() throws {
    let lines = Shared<[Data]>([])
    var logger = Logger(label: "keepsake") { label in
      JSONLineLogHandler(label: label, level: .info) { lines.value += [$0] }
    }
    logger[metadataKey: "server"] = "one"
    logger.debug("Hidden")
    logger.warning("A \"line\"\nbreak", metadata: ["level": "x", "list": ["a", "b"], "map": ["k": "v\u{1}"]])
    #expect(lines.value.count == 1)
    let line = try #require(lines.value.first)
    #expect(line.filter { $0 == UInt8(ascii: "\n") }.count == 1 && line.last == UInt8(ascii: "\n"))
    let fields = try #require(JSONSerialization.jsonObject(with: line) as? [String: Any])
    #expect(fields["label"] as? String == "keepsake" && fields["level"] as? String == "warning")
    #expect(fields["message"] as? String == "A \"line\"\nbreak" && fields["server"] as? String == "one")
    #expect(fields["_level"] as? String == "x" && fields["list"] as? [String] == ["a", "b"])
    #expect(fields["map"] as? [String: String] == ["k": "v\u{1}"])
    #expect((fields["time"] as? String)?.hasSuffix("Z") == true)
  }
}
#endif
