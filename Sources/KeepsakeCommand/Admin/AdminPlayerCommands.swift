#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer

/// `keepsake admin player`: finding players, and what is done with all of one.
struct AdminPlayerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "player", abstract: "Find a player; ban, export or delete one.",
    subcommands: [
      AdminPlayerFindCommand.self, AdminPlayerShowCommand.self, AdminPlayerExportCommand.self,
      AdminPlayerDeleteCommand.self, AdminPlayerBanCommand.self, AdminPlayerUnbanCommand.self,
    ])
}

/// A moment as it is printed for programs: in milliseconds, and as text.
enum AdminMoment {
  static func text(_ milliseconds: Int64?) -> String? { milliseconds.map { TimeText.iso(milliseconds: $0) } }
}

/// A player as the cloud shows it.
struct AdminPlayerView: Codable {
  /// How often a device's store went back to an older state, and the last time from which seq to which.
  struct SetBack: Codable {
    var count: Int
    var last: String?
    var lastMilliseconds: Int64
    var from: UInt64
    var to: UInt64
  }
  struct Device: Codable {
    var device: DeviceID
    var name: String
    var created: String?
    var createdMilliseconds: Int64
    var seen: String?
    var seenMilliseconds: Int64
    var setBack: SetBack?

    /// With the moments as text, too.
    var dated: Device {
      var dated = self
      (dated.created, dated.seen) = (AdminMoment.text(createdMilliseconds), AdminMoment.text(seenMilliseconds))
      dated.setBack?.last = AdminMoment.text(setBack?.lastMilliseconds)
      return dated
    }
  }
  struct Ban: Codable {
    var reason: String
    var since: String?
    var sinceMilliseconds: Int64
  }
  /// A shared container that a player of a game has.
  struct Shared: Codable {
    var name: String?
    /// 16 hexadecimal digits.
    var share: String
    var container: ContainerID
    /// By which it is shown.
    var player: PlayerID

    var text: String { "shared container \(Printable.text(name ?? share)): player \(player)" }
  }
  /// A player of a game who has a shared container.
  struct Parent: Codable {
    var container: ContainerID
    var player: PlayerID?
    /// 16 hexadecimal digits.
    var app: String?

    var text: String {
      guard let player else { return "parent: a player without devices" }
      return "parent: player \(player)" + (app.map { ", app \(Printable.text($0))" } ?? "")
    }
  }
  var player: PlayerID
  var devices: [Device]
  var usedBytes: Int64
  var ban: Ban?
  var shared: [Shared]?
  var parents: [Parent]?

  /// With the moments as text, too.
  var dated: AdminPlayerView {
    var dated = self
    dated.devices = devices.map(\.dated)
    dated.ban?.since = AdminMoment.text(ban?.sinceMilliseconds)
    return dated
  }

  var text: String {
    var lines = ["player \(player)  \(CountText.of(usedBytes, "byte"))"]
    if let ban {
      lines.append("banned since \(TimeText.iso(milliseconds: ban.sinceMilliseconds)): \(Printable.text(ban.reason))")
    }
    lines += (shared ?? []).map(\.text) + (parents ?? []).map(\.text)
    return (lines + [Self.table(devices)]).joined(separator: "\n")
  }

  private static func text(_ setBack: SetBack) -> String {
    "\(CountText.of(setBack.count, "time")), last \(TimeText.iso(milliseconds: setBack.lastMilliseconds))"
  }

  static func table(_ devices: [Device]) -> String {
    TextTable.text(
      ["device", "name", "registered", "last seen", "set back"],
      devices.map {
        [
          "\($0.device)", Printable.text($0.name), TimeText.iso(milliseconds: $0.createdMilliseconds),
          TimeText.iso(milliseconds: $0.seenMilliseconds), $0.setBack.map(Self.text) ?? "",
        ]
      })
  }
}

/// `keepsake admin player find`: finds a player.
struct AdminPlayerFindCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "find", abstract: "Find players by the id of one of their devices.",
    examples: [
      "keepsake admin player find --url URL --key-file key --device DEVICE"
    ])

  @OptionGroup var options: AdminOptions

  @Option(name: .long, help: ArgumentHelp("The device, as the game shows it.", valueName: "id"))
  var device: DeviceArgument

  private struct Found: Codable {
    var players: [AdminPlayerView]
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      let answer = try await client.send("GET", ["players"], query: ["device": "\(device.id)"])
      let players = try client.decode(Found.self, answer).players
      if options.json { return try Output.document(Found(players: players.map(\.dated))) }
      Output.text(players.isEmpty ? "no player has this device" : players.map(\.text).joined(separator: "\n\n"))
    }
  }
}

/// `keepsake admin player show`: shows a player.
struct AdminPlayerShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a player: devices, room, ban, shared containers.",
    examples: [
      "keepsake admin player show --url URL --key-file key PLAYER"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      let answer = try await client.send("GET", ["players", "\(player.id)"])
      let shown = try client.decode(AdminPlayerView.self, answer)
      if options.json { return try Output.document(shown.dated) }
      Output.text(shown.text)
    }
  }
}

/// `keepsake admin player export`: everything of a player as a file.
struct AdminPlayerExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write everything of a player into a tar archive.",
    examples: [
      "keepsake admin player export --url URL --key-file key PLAYER -o player.tar"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Option(
    name: .shortAndLong, help: ArgumentHelp("The file to write. Only its owner may read it.", valueName: "file"),
    completion: .file())
  var output: String

  @Flag(name: .shortAndLong, help: "Replace a file that exists.")
  var force = false

  private struct Written: Encodable {
    var player: PlayerID
    var output: String
    var fileBytes: Int64
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      try OutputFile.check(output, mayReplace: force)
      let file = URL(fileURLWithPath: output)
      // What is there stays until the new archive is known to be whole.
      let partial = file.deletingLastPathComponent()
        .appendingPathComponent(".\(file.lastPathComponent.prefix(100)).\(UUID().uuidString)")
      let isWhole: Bool
      do {
        try await options.client().download(["players", "\(player.id)", "export"], to: partial)
        isWhole = try PlayerArchive.accept(partial, as: file)
      } catch {
        try Self.removeIfThere(partial)
        throw error
      }
      guard isWhole else {
        try Self.removeIfThere(partial)
        throw CommandFailure(.unavailable, "the archive wasn't sent to its end", next: "try again")
      }
      let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int64 ?? 0
      if options.json { return try Output.document(Written(player: player.id, output: output, fileBytes: size)) }
      Output.text("\(Printable.text(output)): \(CountText.of(size, "byte"))")
    }
  }

  private static func removeIfThere(_ file: URL) throws {
    guard FileManager.default.fileExists(atPath: file.path) else { return }
    try FileManager.default.removeItem(at: file)
  }
}

/// `keepsake admin player delete`: deletes everything of a player.
struct AdminPlayerDeleteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Delete everything of a player, for good.",
    discussion: """
      Devices of the player are refused from then on, and keep what they have. Backups that were made before still \
      have the player. Without --yes, nothing is done.
      """,
    examples: [
      "keepsake admin player delete --url URL --key-file key PLAYER --yes"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Flag(name: .long, help: "Really delete.")
  var yes = false

  private struct Erased: Decodable {
    var erased: Bool
  }
  private struct Deleted: Encodable {
    var player: PlayerID
    var erased: Bool
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      guard yes else {
        throw CommandFailure(.usage, "nothing was deleted", next: "repeat it with --yes: it can't be undone")
      }
      let client = try options.client()
      let answer = try await client.send("DELETE", ["players", "\(player.id)"])
      let isErased = try client.decode(Erased.self, answer).erased
      if options.json { return try Output.document(Deleted(player: player.id, erased: isErased)) }
      Output.text("deleted")
      if !isErased {
        Output.complaint("something may be left in the database's files: see Support in docs/OPERATIONS.md")
      }
    }
  }
}

/// `keepsake admin player ban`: refuses a player's devices.
struct AdminPlayerBanCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ban", abstract: "Refuse a player's devices, until the ban is lifted.",
    examples: [
      "keepsake admin player ban --url URL --key-file key PLAYER --reason cheating"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Option(name: .long, help: "Why. The game and the audit log get it: no names of people.")
  var reason: String

  private struct Banned: Encodable {
    var player: PlayerID
    var ban: AdminPlayerView.Ban
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      let answer = try await client.send("PUT", ["players", "\(player.id)", "ban"], body: ["reason": reason])
      var ban = try client.decode(AdminPlayerView.Ban.self, answer)
      ban.since = AdminMoment.text(ban.sinceMilliseconds)
      if options.json { return try Output.document(Banned(player: player.id, ban: ban)) }
      Output.text("banned")
    }
  }
}

/// `keepsake admin player unban`: lifts a ban.
struct AdminPlayerUnbanCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unban", abstract: "Lift a player's ban.",
    examples: [
      "keepsake admin player unban --url URL --key-file key PLAYER"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  private struct Lifted: Encodable {
    var player: PlayerID
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      _ = try await options.client().send("DELETE", ["players", "\(player.id)", "ban"])
      if options.json { return try Output.document(Lifted(player: player.id)) }
      Output.text("the ban is lifted")
    }
  }
}
#endif
