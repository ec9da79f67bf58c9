#if Cloud
import ArgumentParser
import Foundation
import KeepsakeServer
import Logging

/// A server that runs as a child of a load: this executable again.
final class LoadPeer {
  enum Kind {
    /// The cloud, in a temporary folder.
    case server
    /// A bare HTTP server of the same library (`BareEcho`).
    case echo
  }
  private static let patienceSeconds = 60

  let url: URL
  let appKey: String
  private let child: ChildProcess
  private let folder: URL

  var process: Int32 { child.processIdentifier }

  /// Starts one, unless there is a server already.
  static func start(_ kind: Kind, unless url: String? = nil, appKey: String? = nil) throws -> LoadPeer? {
    url == nil ? try LoadPeer(kind) : nil
  }

  init(_ kind: Kind) throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("keepsake-load-\(UUID().uuidString)")
    let arguments =
      switch kind {
      case .server:
        [
          "serve", "--data", folder.path, "--port", "0", "--json", "--until-input-ends",
          "--registrations-per-address", "1000000",
        ]
      case .echo: ["load-echo"]
      }
    child = try ChildProcess(name: "the server under load", arguments: arguments)
    guard let line = try child.readLine(withinSeconds: Self.patienceSeconds) else {
      throw ChildProcess.Failure.ended("the server under load")
    }
    let hello = try JSONDecoder().decode(ServeCommand.Hello.self, from: line)
    guard let url = URL(string: hello.url) else {
      throw CommandFailure(.software, "the server under load has the address \(hello.url)")
    }
    (self.url, appKey) = (url, hello.appKey)
  }

  /// Ends it, and removes its data.
  func stop() {
    _ = child.terminate()
    // A folder left behind in the temporary files does no harm.
    try? FileManager.default.removeItem(at: folder)
  }

  deinit { stop() }
}

/// `keepsake load-echo`: the bare HTTP server, as a process of its own.
struct LoadEchoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "load-echo", abstract: "Answer each request with as many bytes.", shouldDisplay: false)

  func run() async throws {
    try await CommandRun.reporting(json: true) {
      LoggingSystem.bootstrap { StreamLogHandler.standardError(label: $0) }
      try await BareEcho.run { url, port in
        Output.line(ServeCommand.Hello(url: url.absoluteString, port: port, appKey: "", appKeys: []))
      }
    }
  }
}

/// What a load is compared with: what the same machine does without the cloud's work.
struct LoadBaselines {
  private let plan: LoadPlan

  init(_ plan: LoadPlan) { self.plan = plan }

  func measure(_ exchangesPerSecond: Double, _ progress: (String) -> Void) throws -> [LoadReport.Baseline] {
    progress("measuring the bare upsert")
    let upsert = try BareUpsert.measure(writers: plan.devices, sizes: plan.sizes, seconds: plan.seconds)
    progress("measuring the bare HTTP server")
    let peer = try LoadPeer(.echo)
    defer { peer.stop() }
    let address = try LoadAddress(peer.url)
    let clock = LoadClock()
    let echoes = (0..<plan.devices).map { _ in EchoClient(plan.sizes, address, clock) }
    let before = try ServerProcessor(of: peer.process)
    let began = ContinuousClock.now
    clock.begin()
    let ended = ThreadGroup()
    for echo in echoes { ended.run(512 << 10) { [echo = Unshared(echo)] in echo.value.run() } }
    Thread.sleep(forTimeInterval: plan.seconds)
    let seconds = (ContinuousClock.now - began) / .seconds(1)
    let after = try ServerProcessor(of: peer.process)
    clock.end()
    ended.wait()
    let times = echoes.flatMap(\.milliseconds)
    return [
      Self.baseline("bare upsert", upsert.milliseconds, upsert.seconds, exchangesPerSecond, nil),
      Self.baseline(
        "bare HTTP", times, seconds, exchangesPerSecond,
        (after.seconds - before.seconds) * 1_000 / Double(max(1, times.count))),
    ]
  }

  private static func baseline(
    _ name: String, _ times: [Double], _ seconds: Double, _ exchangesPerSecond: Double, _ processor: Double?
  ) -> LoadReport.Baseline {
    let latencies = Latencies(times)
    let perSecond = Double(times.count) / seconds
    return LoadReport.Baseline(
      name: name, perSecond: perSecond, p50: latencies?.p50 ?? 0, p99: latencies?.p99 ?? 0,
      ratio: perSecond > 0 ? exchangesPerSecond / perSecond : 0, millisecondsPerRequest: processor)
  }
}

/// Sends bodies of a save's size to the bare HTTP server.
private final class EchoClient {
  private let sizes: [Int]
  private let connection: LoadConnection
  private let clock: LoadClock
  private(set) var milliseconds: [Double] = []

  init(_ sizes: [Int], _ address: LoadAddress, _ clock: LoadClock) {
    (self.sizes, self.clock) = (sizes, clock)
    connection = LoadConnection(address)
  }

  func run() {
    let bodies = sizes.map { Data(repeating: 0x61, count: $0) }
    while !clock.isEnded {
      guard let body = bodies.randomElement() else { return }
      let began = ContinuousClock.now
      do throws(LoadError) {
        try LoadDevice.check(try connection.call("POST", "/echo", body: body))
        milliseconds.append((ContinuousClock.now - began) / .milliseconds(1))
      } catch {
        clock.pause(.milliseconds(100))
      }
    }
  }
}
#endif
