#if Cloud
import Foundation

/// What `keepsake load --json` prints.
struct LoadDocument: Encodable {
  /// What was asked for.
  struct Options: Encodable {
    var deviceCount: Int
    var perPlayer: Int
    var durationMilliseconds: Double
    var thinkMilliseconds: Double
    /// The sizes of saves.
    var saveBytes: [Int]
    var streamCount: Int
    var empty: Double
    var pairings: Double
    var catchUps: Double
    var hostile: Double
    var attacks: [LoadAttack]
  }
  struct Action: Encodable {
    var action: String
    var count: Int
    var p50Milliseconds: Double
    var p90Milliseconds: Double
    var p99Milliseconds: Double
    var longestMilliseconds: Double
  }
  struct Server: Encodable {
    /// Of the server's processor.
    var perExchangeMilliseconds: Double
    /// How many of the machine's cores it used on average.
    var cores: Double
    var memoryBytes: Int64
    var peakMemoryBytes: Int64
    /// By how much the memory grew while the event streams were opened, for each of them.
    var bytesPerStream: Double?
  }
  struct Baseline: Encodable {
    var name: String
    var perSecond: Double
    var p50Milliseconds: Double
    var p99Milliseconds: Double
    /// Exchanges a second of the load, as a part of this.
    var ratio: Double
    /// Of the peer's processor, if it is a process of its own.
    var perRequestMilliseconds: Double?
  }
  struct Counted: Encodable {
    var what: String
    var count: Int
  }
  var url: String
  var options: Options
  var durationMilliseconds: Double
  var exchangesPerSecond: Double
  /// By what was done.
  var actions: [Action]
  /// Of each status and code, how many.
  var errorCounts: [Counted]
  var attackCounts: [Counted]
  var eventCount: Int
  var server: Server?
  var baselines: [Baseline]

  init(_ report: LoadReport) {
    let plan = report.plan
    url = report.url
    options = Options(
      deviceCount: plan.devices, perPlayer: plan.perPlayer, durationMilliseconds: plan.seconds * 1_000,
      thinkMilliseconds: plan.thinkMilliseconds, saveBytes: plan.sizes, streamCount: plan.streams, empty: plan.empty,
      pairings: plan.pairings, catchUps: plan.catchUps, hostile: plan.hostile, attacks: plan.attacks)
    durationMilliseconds = report.seconds * 1_000
    exchangesPerSecond = report.exchangesPerSecond
    actions = LoadRecord.Action.allCases.compactMap { action in
      report.actions[action.rawValue].map {
        Action(
          action: action.rawValue, count: $0.count, p50Milliseconds: $0.p50, p90Milliseconds: $0.p90,
          p99Milliseconds: $0.p99, longestMilliseconds: $0.longest)
      }
    }
    (errorCounts, attackCounts) = (Self.counted(report.errors), Self.counted(report.attacks))
    eventCount = report.events
    server = report.server.map {
      Server(
        perExchangeMilliseconds: $0.millisecondsPerExchange, cores: $0.cores, memoryBytes: $0.memoryBytes,
        peakMemoryBytes: $0.peakMemoryBytes, bytesPerStream: $0.bytesPerStream)
    }
    baselines = report.baselines.map {
      Baseline(
        name: $0.name, perSecond: $0.perSecond, p50Milliseconds: $0.p50, p99Milliseconds: $0.p99, ratio: $0.ratio,
        perRequestMilliseconds: $0.millisecondsPerRequest)
    }
  }

  private static func counted(_ counts: [String: Int]) -> [Counted] {
    counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { Counted(what: $0.key, count: $0.value) }
  }
}
#endif
