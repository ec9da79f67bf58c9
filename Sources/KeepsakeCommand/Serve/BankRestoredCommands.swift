#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer
import KeepsakeStore
import KeepsakeSync
import Logging

/// `keepsake bank restored`: marks the database of a stopped server as a backup that was put back, or begins a new epoch
/// in a database that several servers use.
struct BankRestoredCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restored", abstract: "Say that the data folder, or its database, was restored from a backup.",
    discussion: """
      The server must not be running. At its next start, players' money is frozen until their devices have shown what \
      they were granted since the backup was made. An older copy of the database alone is also found without this. \
      With --database, money is frozen at once, and again with each call; servers that run notice within a second. \
      Grants, charges, refunds and receipts since then are lost: send them again when keepsake bank status lists no \
      frozen money for the player. What it lists as left to the player was paid before: charge it.
      """,
    examples: [
      "keepsake bank restored --data cloud"
    ])

  @OptionGroup var options: CloudDatabaseOptions

  private struct Marked: Encodable {
    /// The folder of the cloud's data.
    var path: String
    /// Whether the next start begins a new epoch.
    var marked: Bool
    /// The epoch that has begun; nil if the next start begins it.
    var epoch: UInt64?
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      var marked = Marked(path: options.data, marked: true)
      let text: String
      let folder = try options.folder.folder
      if let address = try options.address() {
        let epoch = try await RestoredCloud.beginEpoch(database: address, logger: BankReleaseCommand.logger)
        (marked.marked, marked.epoch) = (false, epoch)
        text = "began epoch \(epoch): players' money is frozen until devices report"
      } else {
        try RestoredCloud.mark(data: folder)
        text = "marked as restored: the next start of keepsake serve freezes players' money until devices report"
      }
      if options.json { try Output.document(marked) } else { Output.text(text) }
    }
  }
}

/// `keepsake bank status`: lists the players whose money is frozen, and for which devices it waits.
struct BankStatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "List players whose money is frozen after a restore, and their missing devices.",
    discussion: "Also works while keepsake serve is running. Changes nothing. Reads every player's bank.",
    examples: [
      "keepsake bank status --data cloud"
    ])

  @OptionGroup var options: CloudDatabaseOptions

  @Option(name: .long, help: ArgumentHelp("Only this player.", valueName: "id"))
  var player: PlayerArgument?

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let status = try BankStatus(data: options.folder.folder, database: options.address(), player: player?.id)
      if options.json {
        try Output.document(BankStatusReport(path: options.data, status))
      } else {
        Output.text(Self.lines(of: status).joined(separator: "\n"))
      }
    }
  }

  static func lines(of status: BankStatus) -> [String] {
    var lines = [status.epoch == 0 ? "never restored" : "epoch \(status.epoch)"]
    if let generation = status.generation { lines.append("generation \(generation)") }
    if status.isMarked { lines.append("marked as restored: the next start begins a new epoch") }
    lines.append(
      status.frozen == 0
        ? "no player's money is frozen" : "frozen: the money of \(CountText.of(status.frozen, "player"))")
    for player in status.players { lines += Self.lines(of: player) }
    if status.frozen > status.players.count {
      lines.append("and \(CountText.of(status.frozen - status.players.count, "further player"))")
    }
    if !status.shortfalls.isEmpty { lines.append("missing, and left to players: \(amounts(status.shortfalls))") }
    if status.unreadable > 0 { lines.append("\(CountText.of(status.unreadable, "bank")) can't be read") }
    if status.frozen > 0 {
      lines.append("if a device won't come back, keepsake bank release ends the wait for it")
    }
    return lines
  }

  private static func lines(of player: BankStatus.Player) -> [String] {
    var title = player.player.map { "player \($0)" } ?? "container \(player.container), without devices"
    if !player.missing.isEmpty { title += "  missing so far: \(amounts(player.missing))" }
    if !player.waiting.isEmpty { title += "  spends that wait: \(amounts(player.waiting))" }
    return [title]
      + player.devices.map { device in
        let name = device.name.isEmpty ? "a device" : Printable.text(device.name)
        let id = device.device.map { " (\($0))" } ?? ""
        let seen = device.seenMilliseconds.map { "last seen \(TimeText.iso(milliseconds: $0))" } ?? "never seen"
        return "  waits for \(name)\(id), \(seen)"
      }
  }

  private static func amounts(_ amounts: [String: Int64]) -> String {
    amounts.sorted { $0.key < $1.key }.map { "\($0.value) \(Printable.text($0.key))" }.joined(separator: ", ")
  }
}

/// `keepsake bank release`: ends the wait for devices that don't come back.
struct BankReleaseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "End the wait of frozen money for devices that won't come back.",
    discussion: """
      A running server is asked with --url and --key-file; the data folder of a stopped one is named with --data, or \
      that of any server, running or not, with --data and --database. What \
      a lost device was granted after the backup is the player's again; what it had before stays with it until it is \
      removed. If it comes back and the player doesn't have the money any more, the difference is booked as a shortfall.
      """,
    examples: [
      "keepsake bank release --url http://127.0.0.1:8080 --key-file key --player 5f0c4a1e9b7d4c2fa8e61d3b2c907f14",
      "keepsake bank release --data cloud --all",
    ])

  @Option(
    name: .shortAndLong, help: ArgumentHelp("The folder of a stopped cloud's data.", valueName: "folder"),
    completion: .directory)
  var data: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Where the cloud's PostgreSQL database is, if it has one, with --data; also KEEPSAKE_DATABASE.",
      valueName: "address"))
  var database: String?

  @Option(name: .long, help: "The address of a running cloud.")
  var url: String?

  @Option(
    name: .long,
    help: ArgumentHelp("A file with a server key, as keepsake bank key prints it.", valueName: "file"),
    completion: .file())
  var keyFile: String?

  @Option(name: .long, help: ArgumentHelp("The player whose money is released.", valueName: "id"))
  var player: PlayerArgument?

  @Flag(name: .long, help: "Release the money of all players.")
  var all = false

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  /// Far larger than any key.
  private static let maximumKeyBytes = 4 * 1_024

  private struct Released: Encodable {
    /// The folder of a stopped cloud's data.
    var path: String?
    /// The address of a running cloud.
    var url: String?
    /// How many players' banks had waited.
    var releasedCount: Int
    /// How many banks can't be read.
    var unreadableCount: Int
  }

  func validate() throws {
    guard (player != nil) != all else { throw ValidationError("Name one player with --player, or all with --all.") }
    guard (data != nil) != (url != nil), (url != nil) == (keyFile != nil) else {
      throw ValidationError(
        "Name a running cloud with --url and --key-file, or the folder of a stopped one with --data.")
    }
    guard database == nil || data != nil else { throw ValidationError("--database needs --data.") }
    if url != nil { _ = try address() }
  }

  private func address() throws -> URL {
    guard let url = url.flatMap({ URL(string: $0) }), ["http", "https"].contains(url.scheme?.lowercased() ?? ""),
      url.host != nil
    else {
      throw ValidationError("--url takes a URL such as http://127.0.0.1:8080.")
    }
    return url
  }

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      var released: Released
      if let data {
        released = try await release(in: FolderArgument.url(data))
      } else {
        released = try await release(at: address())
      }
      (released.path, released.url) = (data, url)
      if json { return try Output.document(released) }
      Output.text("released the money of \(CountText.of(released.releasedCount, "player"))")
      guard released.unreadableCount > 0 else { return }
      Output.complaint("\(CountText.of(released.unreadableCount, "bank")) can't be read")
    }
  }

  /// Standard output is for the result.
  static var logger: Logger { Logger(label: "keepsake.server") { StreamLogHandler.standardError(label: $0) } }

  private func release(in folder: URL) async throws -> Released {
    let address = try CloudDatabaseOptions.address(database)
    do {
      let (released, unreadable) = try await RestoredCloud.release(
        data: folder, database: address, player: player?.id, logger: Self.logger)
      return Released(releasedCount: released, unreadableCount: unreadable)
    } catch let error as ServerError where error.code == .folderInUse {
      throw CommandFailure(
        .temporary, error.message, next: "ask the running server with --url and --key-file, or stop it")
    }
  }

  private func release(at url: URL) async throws -> Released {
    let bank = HTTPBank(url: url, key: try key())
    do {
      if let player {
        guard let released = try await bank.release(player.id) else { throw Self.unknown(player.id) }
        return Released(releasedCount: released ? 1 : 0, unreadableCount: 0)
      }
      var sum = Released(releasedCount: 0, unreadableCount: 0)
      var place: ContainerID?
      repeat {
        let page = try await bank.releasePage(after: place)
        sum.releasedCount += page.released
        sum.unreadableCount += page.unreadable
        place = page.next
      } while place != nil
      return sum
    } catch let error as TransportFailure {
      throw Self.failure(error)
    }
  }

  private static func unknown(_ player: PlayerID) -> CommandFailure {
    CommandFailure(
      .noInput, "there is no player \(player), or none of the player's devices is left",
      next: "keepsake bank status lists those whose money is frozen")
  }

  private static func failure(_ failure: TransportFailure) -> CommandFailure {
    switch failure.kind {
    case .unauthorized:
      CommandFailure(
        .permission, failure.message, next: "check --key-file: it needs a key that keepsake bank key has printed")
    case .unreachable, .interrupted, .server:
      CommandFailure(
        .unavailable, failure.message, next: "check --url, and try again: what is released already stays so")
    case .notEntitled, .rejected: CommandFailure(failure)
    }
  }

  private func key() throws -> String {
    let path = keyFile ?? ""
    let bytes = try AtomicFile.read(
      // Such as a shell's <(...), which keeps the key off the disk.
      URL(fileURLWithPath: path), maximumBytes: Self.maximumKeyBytes, acceptsPipes: true)
    guard let bytes else {
      throw CommandFailure(.noInput, "there is no file \(path)", next: "name a file with a server key after --key-file")
    }
    let key = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    guard !key.isEmpty, !key.contains(where: \.isWhitespace) else {
      throw CommandFailure(.data, "\(path) has no server key", next: "create one with keepsake bank key")
    }
    return key
  }
}
#endif
