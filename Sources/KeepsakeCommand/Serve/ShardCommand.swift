#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer
import Logging
import Synchronization

/// `keepsake shard`: the databases over which a cloud's players are spread.
struct ShardCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shard",
    abstract: "Show the databases over which a cloud's players are spread, and move players between them.",
    discussion: """
      Works beside the cloud's servers, while everybody plays. Start all servers with a new shard first.
      """,
    subcommands: [
      ShardListCommand.self, ShardMoveCommand.self, ShardDrainCommand.self, ShardOpenCommand.self,
    ])
}

/// What the commands have in common.
struct ShardOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "The cloud's first PostgreSQL database, as for keepsake serve; also KEEPSAKE_DATABASE.", valueName: "address"))
  var database: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "A further database, as for keepsake serve; may be repeated. Also KEEPSAKE_SHARD.", valueName: "name=address"))
  var shard: [String] = []

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  /// Opens the databases, and closes them after `body`.
  func with<Result>(_ body: (CloudShards) async throws -> Result) async throws -> Result {
    let environment = ProcessInfo.processInfo.environment
    func variable(_ name: String) -> String? { ServeSetting.named(name).flatMap { environment[$0.variable] } }
    let given = shard.isEmpty ? variable("shard")?.split(separator: ",").map(String.init) ?? [] : shard
    guard let address = database ?? variable("database"), !address.isEmpty, !given.isEmpty else {
      throw CommandFailure(
        .usage, "the cloud's databases are missing",
        next: "name them with --database and --shard as for keepsake serve")
    }
    do {
      var logger = Logger(label: "keepsake.shard")
      logger.logLevel = .error
      let shards = try await CloudShards(database: address, shards: given, logger: logger)
      let result: Result
      do {
        result = try await body(shards)
      } catch {
        try await shards.close()
        throw error
      }
      try await shards.close()
      return result
    } catch let error as ServerError where error.code == .inputOutput {
      throw CommandFailure(
        .unavailable, error.description, next: "see that all databases run and can be reached from here; run it again")
    }
  }
}

/// `keepsake shard list`: shows the shards.
struct ShardListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Show how many players each shard has, and how much they have stored.",
    examples: [
      "keepsake shard list --database postgres://db1/keepsake --shard two=postgres://db2/keepsake"
    ])

  @OptionGroup var options: ShardOptions

  private struct Shards: Encodable {
    struct Shard: Encodable {
      var name: String
      var open: Bool
      var playerCount: Int
      var usedBytes: Int64
    }
    var shards: [Shard]
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let shards = try await options.with { try await $0.list() }
      if options.json {
        return try Output.document(
          Shards(
            shards: shards.map {
              Shards.Shard(name: $0.name, open: $0.isOpen, playerCount: $0.players, usedBytes: $0.bytes)
            }))
      }
      Output.text(
        TextTable.text(
          ["shard", "players", "stored", "new players"],
          shards.map { [$0.name, "\($0.players)", Printable.size($0.bytes), $0.isOpen ? "yes" : "no"] }))
    }
  }
}

/// `keepsake shard move`: moves players to a shard.
struct ShardMoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "move", abstract: "Move players from one shard to another, while they play.",
    discussion: """
      Each player is away for some milliseconds, in which devices wait. What was copied is compared before the player \
      is there. Players who share something are moved together. It may be stopped or killed at any time: each player \
      is then in one of the two shards, and servers mend within seconds what was half done.
      """,
    examples: [
      "keepsake shard move --database postgres://db1/keepsake --shard two=postgres://db2/keepsake --from home --to two"
    ])

  @OptionGroup var options: ShardOptions

  @Option(name: .long, help: "The shard to move to.")
  var to: String

  @Option(name: .long, help: "The shard to move from.")
  var from: String?

  @Option(name: .long, help: "How many players to move, about.")
  var count: Int?

  @Option(name: .long, help: ArgumentHelp("Move only this player.", valueName: "id"))
  var player: PlayerArgument?

  @Option(name: .long, help: ArgumentHelp("At most this many players in a second.", valueName: "count"))
  var pace: Int?

  func validate() throws {
    guard (player == nil) != (from == nil) else { throw ValidationError("Name either --player or --from.") }
    guard player == nil || count == nil else { throw ValidationError("--count goes with --from.") }
    guard count.map({ $0 > 0 }) ?? true, pace.map({ $0 > 0 }) ?? true else {
      throw ValidationError("--count and --pace take numbers above 0.")
    }
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      try await options.with { shards in
        if let player, from == nil {
          return try ShardRun.show(try await shards.move(player.id, to: to), 0, json: options.json)
        }
        let order = CloudShards.Order(from: from ?? "", to: to, count: count, perSecond: pace)
        let done = try await ShardRun.move(order, in: shards, json: options.json)
        try ShardRun.show(done.moved, done.skipped, json: options.json)
      }
    }
  }
}

/// `keepsake shard drain`: moves all players away from a shard.
struct ShardDrainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drain", abstract: "Move all players away from a shard, which gets no new ones from then on.",
    discussion: """
      They are spread over the shards that are open for new players. keepsake shard open opens it again.
      """,
    examples: [
      "keepsake shard drain --database postgres://db1/keepsake --shard two=postgres://db2/keepsake --from two"
    ])

  @OptionGroup var options: ShardOptions

  @Option(name: .long, help: "The shard.")
  var from: String

  @Option(name: .long, help: ArgumentHelp("At most this many players in a second.", valueName: "count"))
  var pace: Int?

  func validate() throws {
    guard pace.map({ $0 > 0 }) ?? true else { throw ValidationError("--pace takes a number above 0.") }
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      try await options.with { shards in
        try await shards.setOpen(false, from)
        // By then all servers know.
        try await Task.sleep(for: .seconds(2))
        let order = CloudShards.Order(from: from, to: nil, count: nil, perSecond: pace)
        var moved = 0
        while true {
          let done = try await ShardRun.move(order, in: shards, json: options.json, before: moved)
          moved += done.moved
          guard done.skipped > 0 else { break }
          if done.moved == 0 {
            throw CommandFailure(
              .temporary, "\(CountText.of(done.skipped, "player")) can't be moved now, as others change them",
              next: "run it again")
          }
        }
        try ShardRun.show(moved, 0, json: options.json)
      }
    }
  }
}

/// `keepsake shard open`: opens a shard for new players.
struct ShardOpenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "open", abstract: "Have new players get a shard again that was drained.",
    examples: [
      "keepsake shard open --database postgres://db1/keepsake --shard two=postgres://db2/keepsake two"
    ])

  @OptionGroup var options: ShardOptions

  @Argument(help: "The shard.")
  var name: String

  private struct Opened: Encodable {
    var name: String
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      try await options.with { try await $0.setOpen(true, name) }
      if options.json { return try Output.document(Opened(name: name)) }
      Output.text("\(Printable.text(name)) gets new players")
    }
  }
}

/// What the commands that move players have in common.
private enum ShardRun {
  private struct Moved: Encodable {
    var movedCount: Int
    var skippedCount: Int
  }

  /// Moves players, shows the progress, and ends in good order when a signal asks for that.
  ///
  /// - Parameter before: How many were moved before.
  static func move(
    _ order: CloudShards.Order, in shards: CloudShards, json: Bool, before: Int = 0
  ) async throws -> CloudShards.Progress {
    let stop = Stop()
    let signals = StopSignals { _ in stop.request() }
    defer { withExtendedLifetime(signals) {} }
    let line = ProgressLine(json: json)
    let start = ContinuousClock.now
    let done = try await shards.move(order) { progress in
      guard !stop.isRequested else { throw CancellationError() }
      let moved = before + progress.moved
      let total = order.count.map { " of \($0)" } ?? ""
      let seconds = max((ContinuousClock.now - start) / .seconds(1), 0.001)
      let rate = Int(Double(progress.moved) / seconds)
      line.update("moving players: \(moved)\(total), \(rate) in a second")
    }
    line.clear()
    return done
  }

  static func show(_ moved: Int, _ skipped: Int, json: Bool) throws {
    if json { return try Output.document(Moved(movedCount: moved, skippedCount: skipped)) }
    let left = skipped > 0 ? "; \(skipped) couldn't be moved, as others were changing them: run it again" : ""
    Output.text("moved \(CountText.of(moved, "player"))\(left)")
  }

  private final class Stop: Sendable {
    private let state = Atomic(false)
    var isRequested: Bool { state.load(ordering: .relaxed) }
    func request() { state.store(true, ordering: .relaxed) }
  }
}
#endif
