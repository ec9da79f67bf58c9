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
      ShardCloseCommand.self, ShardHoldCommand.self, ShardReleaseCommand.self,
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

  /// The databases that were named, from the environment if not by flags.
  private func addresses() throws -> (database: String, shards: [String]) {
    let environment = ProcessInfo.processInfo.environment
    func variable(_ name: String) -> String? { ServeSetting.named(name).flatMap { environment[$0.variable] } }
    let given = shard.isEmpty ? variable("shard")?.split(separator: ",").map(String.init) ?? [] : shard
    guard let address = database ?? variable("database"), !address.isEmpty, !given.isEmpty else {
      throw CommandFailure(
        .usage, "the cloud's databases are missing",
        next: "name them with --database and --shard as for keepsake serve")
    }
    return (address, given)
  }

  private var logger: Logger {
    var logger = Logger(label: "keepsake.shard")
    logger.logLevel = .error
    return logger
  }

  /// Has new players get a shard, or not, with nothing but the first database: another one may be down.
  func setOpen(_ isOpen: Bool, _ name: String) async throws {
    let (database, shards) = try addresses()
    try CloudShards.check(shards)
    try await explaining { try await CloudShards.setOpen(isOpen, name, database: database, logger: logger) }
  }

  /// Has nobody moved for so long; 0 to have players moved again.
  func hold(minutes: Int) async throws {
    let (database, shards) = try addresses()
    try CloudShards.check(shards)
    try await explaining { try await CloudShards.hold(minutes: minutes, database: database, logger: logger) }
  }

  /// Opens the databases, and closes them after `body`.
  func with<Result>(_ body: (CloudShards) async throws -> Result) async throws -> Result {
    let (database, given) = try addresses()
    return try await explaining {
      let shards = try await CloudShards(database: database, shards: given, logger: logger)
      let result: Result
      do {
        result = try await body(shards)
      } catch {
        try await shards.close()
        throw error
      }
      try await shards.close()
      return result
    }
  }

  private func explaining<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
      return try await body()
    } catch let error as ServerError where error.code == .inputOutput {
      throw CommandFailure(
        .unavailable, error.description, next: "see that all databases run and can be reached from here; run it again")
    } catch let error as ServerError where error.code == .damaged {
      throw CommandFailure(.data, error.description, next: "see \"Several databases\" in docs/OPERATIONS.md")
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
      Each player is away while everything of the player is copied and compared, in which devices wait: milliseconds \
      for most of them, minutes for some gigabytes. Players who share something are moved together, and are away until \
      all of them are there. It may be stopped or killed at any time: each player is then in one of the two shards, \
      and servers mend within seconds what was half done. Who can't be moved is named in the end, and stays where \
      they are.
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
          var done = CloudShards.Progress()
          done.moved = try await shards.move(player.id, to: to)
          return try ShardRun.show(done, json: options.json)
        }
        let order = CloudShards.Order(from: from ?? "", to: to, count: count, perSecond: pace)
        let done = try await ShardRun.reporting(of: order.count, json: options.json) {
          try await shards.move(order, progress: $0)
        }
        try ShardRun.show(done, json: options.json)
      }
    }
  }
}

/// `keepsake shard drain`: moves all players away from a shard.
struct ShardDrainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drain", abstract: "Move all players away from a shard, which gets no new ones from then on.",
    discussion: """
      They are spread over the shards that are open for new players. It goes on until nobody is left but those who \
      can't be moved, whom it names. keepsake shard open opens the shard again.
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
        let done = try await ShardRun.reporting(of: nil, json: options.json) {
          try await shards.drain(from, perSecond: pace, progress: $0)
        }
        guard done.skipped == 0 else {
          let moved = "moved \(CountText.of(done.moved, "player")), and \(ShardRun.left(done))"
          throw CommandFailure(done.refused.isEmpty ? .temporary : .data, moved, next: "run it again")
        }
        try ShardRun.show(done, json: options.json)
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
      try await options.setOpen(true, name)
      if options.json { return try Output.document(Opened(name: name)) }
      Output.text("\(Printable.text(name)) gets new players")
    }
  }
}

/// `keepsake shard close`: closes a shard for new players.
struct ShardCloseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "close", abstract: "Have new players get no place in a shard.",
    discussion: """
      The players who are there stay. It needs the first database only: close a shard that is down, so that new \
      players can register.
      """,
    examples: [
      "keepsake shard close --database postgres://db1/keepsake --shard two=postgres://db2/keepsake two"
    ])

  @OptionGroup var options: ShardOptions

  @Argument(help: "The shard.")
  var name: String

  private struct Closed: Encodable {
    var name: String
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      try await options.setOpen(false, name)
      if options.json { return try Output.document(Closed(name: name)) }
      Output.text("\(Printable.text(name)) gets no new players")
    }
  }
}

/// `keepsake shard hold`: has nobody moved for a while.
struct ShardHoldCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hold", abstract: "Have nobody moved for a while, so that all databases can be backed up.",
    discussion: """
      Waits until moves that have begun are over. Until the time is over, or keepsake shard release, a request for \
      which somebody would have to be moved, such as joining a shared container, is told to come again.
      """,
    examples: [
      "keepsake shard hold --database postgres://db1/keepsake --shard two=postgres://db2/keepsake --minutes 30"
    ])

  @OptionGroup var options: ShardOptions

  @Option(name: .long, help: "For how long, at most a day.")
  var minutes = 60

  private struct Held: Encodable {
    var heldMinutes: Int
  }

  func validate() throws {
    guard (1...1_440).contains(minutes) else { throw ValidationError("--minutes takes 1 to 1440.") }
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      try await options.hold(minutes: minutes)
      if options.json { return try Output.document(Held(heldMinutes: minutes)) }
      Output.text("nobody is moved for \(CountText.of(minutes, "minute"))")
    }
  }
}

/// `keepsake shard release`: ends `keepsake shard hold`.
struct ShardReleaseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Have players moved again, before the time of keepsake shard hold is over.",
    examples: [
      "keepsake shard release --database postgres://db1/keepsake --shard two=postgres://db2/keepsake"
    ])

  @OptionGroup var options: ShardOptions

  private struct Released: Encodable {
    var heldMinutes = 0
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      try await options.hold(minutes: 0)
      if options.json { return try Output.document(Released()) }
      Output.text("players can be moved again")
    }
  }
}

/// What the commands that move players have in common.
private enum ShardRun {
  private struct Moved: Encodable {
    struct Refusal: Encodable {
      var container: ContainerID
      var reason: String
    }
    var movedCount: Int
    var skippedCount: Int
    /// The first ones that can't be moved as they are.
    var refused: [Refusal]
  }

  /// Moves players, shows the progress, and ends in good order when a signal asks for that.
  ///
  /// - Parameter count: How many are to be moved; nil for all.
  static func reporting(
    of count: Int?, json: Bool,
    _ body: ((CloudShards.Progress) throws -> Void) async throws -> CloudShards.Progress
  ) async throws -> CloudShards.Progress {
    let stop = Stop()
    let signals = StopSignals { _ in stop.request() }
    defer { withExtendedLifetime(signals) {} }
    let line = ProgressLine(json: json)
    let start = ContinuousClock.now
    let done = try await body { progress in
      guard !stop.isRequested else { throw CancellationError() }
      let total = count.map { " of \($0)" } ?? ""
      let seconds = max((ContinuousClock.now - start) / .seconds(1), 0.001)
      let rate = Int(Double(progress.moved) / seconds)
      line.update("moving players: \(progress.moved)\(total), \(rate) in a second")
    }
    line.clear()
    return done
  }

  static func show(_ done: CloudShards.Progress, json: Bool) throws {
    if json {
      let refused = done.refused.map { Moved.Refusal(container: $0.container, reason: $0.reason) }
      return try Output.document(Moved(movedCount: done.moved, skippedCount: done.skipped, refused: refused))
    }
    let left = done.skipped > 0 ? "; \(left(done)): run it again" : ""
    Output.text("moved \(CountText.of(done.moved, "player"))\(left)")
  }

  /// Says who couldn't be moved, and why.
  static func left(_ done: CloudShards.Progress) -> String {
    let busy = done.skipped - done.refused.count
    let refused = done.refused.map { "\($0.container) can't be moved: \($0.reason)" }
    let others = busy > 0 ? ["\(busy)\(refused.isEmpty ? "" : " others") couldn't be moved, as others change them"] : []
    return (refused + others).joined(separator: "; ")
  }

  private final class Stop: Sendable {
    private let state = Atomic(false)
    var isRequested: Bool { state.load(ordering: .relaxed) }
    func request() { state.store(true, ordering: .relaxed) }
  }
}
#endif
