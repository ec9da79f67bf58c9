#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer
import KeepsakeStore

/// `keepsake load`: simulated devices against a running server.
struct LoadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "load",
    abstract: "Put load on a cloud with simulated devices, and measure it.",
    discussion: """
      Without --url, a server of its own runs for the time of the load, in a temporary folder. A server at an address \
      that isn't one of this machine is loaded only if you say that it is yours. The devices register and stay: use a \
      server whose data you can remove.
      """,
    examples: [
      "keepsake load --devices 64 --size 1K --baselines --plot load.svg",
      "keepsake load --url http://127.0.0.1:8080 --app-key $KEY --devices 200 --think 1000 --hostile 0.05",
    ])

  @Option(name: .long, help: "The address of the server under load.")
  var url: String?

  @Option(name: .long, help: ArgumentHelp("An app key of that server.", valueName: "key"))
  var appKey: String?

  @Option(
    name: .long,
    help: ArgumentHelp("The server's process on this machine, to measure its processor and memory.", valueName: "pid"))
  var serverPid: Int32?

  @Flag(name: .long, help: "The server at an address that isn't one of this machine is yours, and may be loaded.")
  var myServer = false

  @Option(name: .long, help: "How many devices make requests.")
  var devices = LoadPlan().devices

  @Option(name: .long, help: "How many of them belong to one player; the others join the first with a code.")
  var perPlayer = LoadPlan().perPlayer

  @Option(name: .long, help: "How long, in seconds.")
  var seconds = LoadPlan().seconds

  @Option(
    name: .long, help: ArgumentHelp("The mean pause between two requests of a device.", valueName: "milliseconds"))
  var think = LoadPlan().thinkMilliseconds

  @Option(
    name: .long,
    help: ArgumentHelp("The sizes of saves, separated by commas: bytes, or with K or M.", valueName: "sizes"))
  var size = "1K"

  @Option(name: .long, help: "How many event streams only listen, besides.")
  var streams = 0

  @Option(name: .long, help: ArgumentHelp("The part of requests, of 1, that send nothing.", valueName: "share"))
  var empty = 0.0

  @Option(name: .long, help: ArgumentHelp("The part that pairs another device.", valueName: "share"))
  var pairings = 0.0

  @Option(name: .long, help: ArgumentHelp("The part that fetches everything again.", valueName: "share"))
  var catchUps = 0.0

  @Option(name: .long, help: ArgumentHelp("How many attackers there are for each device.", valueName: "share"))
  var hostile = 0.0

  @Option(
    name: .long,
    help: ArgumentHelp(
      """
      What they do, separated by commas: \(LoadAttack.allCases.map(\.rawValue).joined(separator: ", ")); by default all.
      """,
      valueName: "attacks"))
  var attacks: String?

  @Flag(name: .long, help: "Measure the bare upsert and the bare HTTP server, too, and print ratios.")
  var baselines = false

  @Option(
    name: .long, help: ArgumentHelp("Write the latencies over time to this file, as SVG.", valueName: "file"),
    completion: .file())
  var plot: String?

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func validate() throws {
    guard (url == nil) == (appKey == nil) else { throw ValidationError("--url needs --app-key, and the other way.") }
    guard url != nil || serverPid == nil else { throw ValidationError("--server-pid is of use with --url only.") }
    if let objection = try plan().objection { throw ValidationError(objection + ".") }
  }

  private func plan() throws -> LoadPlan {
    var plan = LoadPlan()
    (plan.devices, plan.perPlayer, plan.seconds) = (devices, perPlayer, seconds)
    (plan.thinkMilliseconds, plan.streams) = (think, streams)
    (plan.empty, plan.pairings, plan.catchUps, plan.hostile) = (empty, pairings, catchUps, hostile)
    plan.sizes = size.split(separator: ",").map { Int(ByteSize(argument: String($0))?.bytes ?? 0) }
    if let attacks {
      plan.attacks = try attacks.split(separator: ",").map { name in
        guard let attack = LoadAttack(rawValue: String(name)) else {
          throw ValidationError("--attacks has no \(name).")
        }
        return attack
      }
    }
    return plan
  }

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let plan = try plan()
      if let plot { try OutputFile.check(plot, mayReplace: true) }
      let line = ProgressLine(json: json)
      let peer = try LoadPeer.start(.server, unless: url, appKey: appKey)
      defer { peer?.stop() }
      guard let target = peer?.url ?? url.flatMap({ URL(string: $0) }) else {
        throw CommandFailure(.usage, "--url takes a URL such as http://127.0.0.1:8080")
      }
      let address = try LoadAddress(target)
      guard address.isOfThisMachine || myServer else {
        throw CommandFailure(
          .permission, "\(address.host) isn't an address of this machine",
          next: "load only a server that is yours, and say so with --my-server")
      }
      let run = LoadRun(
        plan: plan, address: address, appKey: peer?.appKey ?? appKey ?? "", server: peer?.process ?? serverPid)
      let result = try run.run { line.update($0) }
      var report = LoadReport(plan, url: target.absoluteString, result)
      peer?.stop()
      if baselines { report.baselines = try LoadBaselines(plan).measure(report.exchangesPerSecond) { line.update($0) } }
      line.clear()
      if let plot {
        let devices = CountText.of(plan.devices, "device")
        let svg = LatencyPlot(
          result.record, title: "\(devices), \(size): latency of exchanges; logarithmic scale",
          seconds: result.seconds
        ).svg
        try AtomicFile.write(Data(svg.utf8), to: URL(fileURLWithPath: plot))
      }
      if json { try Output.document(LoadDocument(report)) } else { Output.text(report.text(on: .standardOutput())) }
    }
  }
}
#endif
