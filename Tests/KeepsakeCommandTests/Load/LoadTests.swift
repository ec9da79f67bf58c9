#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeServer
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake load` against a server in this process.
@Suite("A cloud under load", .serialized, .hangLimit) struct LoadTests {
  /// Runs a server in a temporary folder while `body` runs, on a thread that it may block.
  private func serving(_ body: @escaping @Sendable (RunningServer) throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      var configuration = ServerConfiguration(data: folder, port: try TestPort.unused())
      let limit = Int(Patience.limit.components.seconds)
      (configuration.stopSeconds, configuration.idleSeconds, configuration.slowGraceSeconds) = (2, limit, limit)
      let (started, starting) = AsyncStream.makeStream(of: RunningServer.self)
      let task = Task { [configuration] in
        defer { starting.finish() }
        try await KeepsakeServer.run(configuration: configuration, signals: []) { starting.yield($0) }
      }
      let running = try #require(await started.first { _ in true })
      do {
        try await onThread { try body(running) }
      } catch {
        running.stop()
        _ = await task.result
        throw error
      }
      running.stop()
      // Connections of attackers may be ended by force.
      _ = await task.result
    }
  }

  private static func run(_ plan: LoadPlan, at server: RunningServer) throws -> LoadRun.Result {
    try LoadRun(plan: plan, address: LoadAddress(server.url), appKey: server.appKeys[0], server: nil).run { _ in }
  }

  @Test("devices of players save, upload, pair, catch up and listen without an error, and all of it is measured")
  func devices() async throws {
    try await serving { server in
      var plan = LoadPlan()
      (plan.devices, plan.perPlayer, plan.streams, plan.seconds) = (6, 2, 6, 3)
      (plan.sizes, plan.empty, plan.pairings, plan.catchUps) = ([1_000, 300_000], 0.2, 0.2, 0.2)
      // However slow the machine is, each kind has to happen at least once.
      var record = LoadRecord()
      while !LoadRecord.Action.allCases.allSatisfy({ record.counts[$0, default: 0] > 0 }) || record.events == 0 {
        record.merge(try Self.run(plan, at: server).record)
        #expect(record.errors.isEmpty)
        guard record.errors.isEmpty else { return }
      }
      let report = LoadReport(plan, url: "http://here", LoadRun.Result(record: record, seconds: 3))
      for action in LoadRecord.Action.allCases { #expect(report.text.contains("| \(action.rawValue) ")) }
      let save = try #require(report.actions["save"])
      #expect(save.p50 <= save.p90 && save.p90 <= save.p99 && save.p99 <= save.longest && save.p50 > 0)
      let svg = LatencyPlot(record, title: "a < b & c", seconds: 3).svg
      #expect(svg.contains("a &lt; b &amp; c") && svg.matches(of: /<polyline/).count == 3)
      #expect(try XMLDocumentCheck.isWellFormed(svg))
    }
  }

  #if os(Linux)
  @Test("what event streams take of a server's memory is measured by opening them")
  func streams() throws {
    var plan = LoadPlan()
    plan.streams = 1_000
    let own = ProcessInfo.processInfo.processIdentifier
    var (first, then) = (try ServerProcessor(of: own), try ServerProcessor(of: own))
    (first.memoryBytes, then.memoryBytes) = (50_000_000, 59_500_000)
    let result = LoadRun.Result(record: LoadRecord(), seconds: 1, withoutStreams: first, before: then, after: then)
    let report = LoadReport(plan, url: "http://here", result)
    #expect(report.server?.bytesPerStream == 9_500)
    #expect(report.text.contains("1000 event streams, which got 0 events; opening them took 9.50 KB each"))
    plan.streams = 0
    #expect(LoadReport(plan, url: "http://here", result).server?.bytesPerStream == nil)
  }
  #endif

  @Test("attackers are counted apart from devices")
  func attackers() async throws {
    try await serving { server in
      var plan = LoadPlan()
      (plan.devices, plan.hostile, plan.seconds, plan.thinkMilliseconds) = (2, 1, 2, 10)
      plan.attacks = [.forgedTokens, .slowBodies]
      let record = try Self.run(plan, at: server).record
      #expect(record.attacks["forged-tokens: 401", default: 0] > 0)
      #expect(record.attacks.keys.contains { $0.hasPrefix("slow-bodies: ") })
      #expect(record.errors.isEmpty && record.counts[.save, default: 0] > 0)
    }
  }

  @Test("a wrong app key, an address of plain nothing and one of another machine are refused")
  func refusals() async throws {
    try await serving { server in
      let address = try LoadAddress(server.url)
      #expect(address.isOfThisMachine)
      #expect(throws: CommandFailure.self) {
        _ = try LoadRun(plan: LoadPlan(), address: address, appKey: "wrong-key", server: nil).run { _ in }
      }
    }
    #expect(throws: CommandFailure.self) { _ = try LoadAddress(#require(URL(string: "https://127.0.0.1"))) }
    // An address for documentation, which no machine has.
    let foreign = try #require(URL(string: "http://192.0.2.1:80"))
    #expect(try !LoadAddress(foreign).isOfThisMachine)
    #expect(
      await status(of: LoadCommand.self, ["--url", foreign.absoluteString, "--app-key", "app-key-of-it"]) == 77)
    for arguments in [
      ["--devices", "0"], ["--size", "0"], ["--size", "x"], ["--empty", "0.7", "--pairings", "0.7"],
      ["--per-player", "65"], ["--streams", "100000"], ["--seconds", "0"], ["--attacks", "none"],
      ["--url", "http://a"],
      ["--server-pid", "1"], ["--hostile", "2"], ["--think", "-1"],
    ] {
      #expect(await status(of: LoadCommand.self, arguments) == 64, "\(arguments)")
    }
  }

  @Test("percentiles are those of the sorted times")
  func percentiles() throws {
    #expect(Latencies([]) == nil)
    let times = try #require(Latencies((1...200).map(Double.init).shuffled()))
    #expect(times.p50 == 101 && times.p90 == 181 && times.p99 == 199 && times.longest == 200)
  }
}

/// Whether every element of a text in XML is closed: enough for what a program writes.
private enum XMLDocumentCheck {
  static func isWellFormed(_ text: String) throws -> Bool {
    var open: [Substring] = []
    for tag in text.matches(of: /<(\/?)([a-z]+)[^<>]*?(\/?)>/) {
      if tag.1 == "/" {
        guard open.popLast() == tag.2 else { return false }
      } else if tag.3.isEmpty {
        open.append(tag.2)
      }
    }
    return open.isEmpty
  }
}
#endif
