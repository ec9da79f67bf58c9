#if Cloud
import Foundation
import KeepsakeReplication

/// The result of a load.
struct LoadReport {
  struct Server {
    /// Of the server's processor, per exchange.
    var millisecondsPerExchange: Double
    /// How many of the machine's cores it used on average.
    var cores: Double
    var memoryBytes: Int64
    var peakMemoryBytes: Int64
    /// By how much the memory grew while the event streams were opened, for each of them; nil without any.
    var bytesPerStream: Double?
  }
  /// What the machine does at most without the cloud's work.
  struct Baseline {
    var name: String
    var perSecond: Double
    var p50: Double
    var p99: Double
    /// Exchanges a second of the load, as a part of this.
    var ratio: Double
    /// Of the peer's processor, if it is a process of its own.
    var millisecondsPerRequest: Double?
  }
  var plan: LoadPlan
  var url: String
  var seconds: Double
  /// Saves and empty exchanges, a second.
  var exchangesPerSecond: Double
  /// In milliseconds, by what was done.
  var actions: [String: Latencies]
  var errors: [String: Int]
  var attacks: [String: Int]
  var events: Int
  var server: Server?
  var baselines: [Baseline] = []

  init(_ plan: LoadPlan, url: String, _ result: LoadRun.Result) {
    let (record, seconds) = (result.record, result.seconds)
    (self.plan, self.url, self.seconds) = (plan, url, seconds)
    let exchanges = Double(record.counts[.save, default: 0] + record.counts[.empty, default: 0])
    exchangesPerSecond = exchanges / seconds
    actions = Dictionary(grouping: record.samples, by: \.action.rawValue).compactMapValues { samples in
      var latencies = Latencies(samples.map(\.milliseconds))
      if let action = samples.first?.action { latencies?.count = record.counts[action, default: 0] }
      return latencies
    }
    (errors, attacks, events) = (record.errors, record.attacks, record.events)
    if let before = result.before, let after = result.after {
      let used = after.seconds - before.seconds
      let streams = result.withoutStreams.map { before.memoryBytes - $0.memoryBytes } ?? 0
      server = Server(
        millisecondsPerExchange: exchanges > 0 ? used * 1_000 / exchanges : 0, cores: used / seconds,
        memoryBytes: after.memoryBytes, peakMemoryBytes: after.peakMemoryBytes,
        bytesPerStream: plan.streams > 0 ? Double(streams) / Double(plan.streams) : nil)
    }
  }

  var text: String { text(on: .plain) }

  func text(on terminal: Terminal) -> String {
    var lines = [
      """
      \(CountText.of(plan.devices, "device")) of \(CountText.of(plan.players, "player")) for \
      \(Self.number(seconds)) s at \(url): \
      \(Self.number(exchangesPerSecond)) exchanges a second
      """
    ]
    if let server {
      lines.append(
        """
        server: \(Self.number(server.millisecondsPerExchange)) ms of processor an exchange, \
        \(Self.number(server.cores)) cores, \(Printable.size(server.memoryBytes)) of memory, \
        at most \(Printable.size(server.peakMemoryBytes))
        """)
    }
    let order = LoadRecord.Action.allCases.filter { actions[$0.rawValue] != nil }
    let rows = order.compactMap { action in
      actions[action.rawValue].map { times in
        [
          action.rawValue, "\(times.count)", Self.number(Double(times.count) / seconds), Self.number(times.p50),
          Self.number(times.p90), Self.number(times.p99), Self.number(times.longest),
        ]
      }
    }
    if !rows.isEmpty {
      lines += [
        "", TextTable.text(["ms", "count", "a second", "50 %", "90 %", "99 %", "longest"], rows, on: terminal),
      ]
    }
    if !baselines.isEmpty {
      let rows = baselines.map {
        [
          $0.name, Self.number($0.perSecond), Self.number($0.p50), Self.number($0.p99),
          $0.millisecondsPerRequest.map(Self.number) ?? "", Self.number($0.ratio),
        ]
      }
      lines += [
        "",
        TextTable.text(
          ["beside", "a second", "50 % ms", "99 % ms", "processor ms", "exchanges / this"], rows, on: terminal),
      ]
    }
    for (title, counts) in [("errors", errors), ("attacks", attacks)] where !counts.isEmpty {
      let rows = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map {
        [Printable.text($0.key), "\($0.value)"]
      }
      lines += ["", TextTable.text([title, "count"], rows, on: terminal)]
    }
    if plan.streams > 0 {
      var line = "\(CountText.of(plan.streams, "event stream")), which got \(CountText.of(events, "event"))"
      if let bytes = server?.bytesPerStream {
        line += "; opening them took \(Self.number(bytes / 1_000)) KB each of the server's memory"
      }
      lines += ["", line]
    }
    return lines.joined(separator: "\n")
  }

  /// Three digits that matter.
  static func number(_ value: Double) -> String {
    value >= 100
      ? String(format: "%.0f", value) : value >= 10 ? String(format: "%.1f", value) : String(format: "%.2f", value)
  }
}
#endif
