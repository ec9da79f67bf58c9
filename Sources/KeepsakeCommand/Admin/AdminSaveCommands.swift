#if Cloud
import ArgumentParser
import Foundation
import KeepsakeInspection
import KeepsakeReplication

/// `keepsake admin save`: a player's saves.
struct AdminSaveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "save", abstract: "Look at a player's saves, compare versions, and restore one.",
    subcommands: [
      AdminSaveListCommand.self, AdminSaveShowCommand.self, AdminSaveDiffCommand.self, AdminSaveRestoreCommand.self,
    ])
}

/// `keepsake admin save list`: lists slots, or the versions of one.
struct AdminSaveListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List a player's slots, or the versions of one, the newest first.",
    examples: [
      "keepsake admin save list --url URL --key-file key PLAYER --slot main"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Option(name: .shortAndLong, help: "List the versions of this slot.")
  var slot: String?

  private struct Slots: Decodable {
    struct Slot: Decodable {
      var slot: String
      var versions: Int
      var heads: Int
    }
    var slots: [Slot]
    var next: String?
  }
  private struct Versions: Decodable {
    var versions: [Version]
    var next: UInt64?
  }
  private struct Version: Codable {
    var version: VersionID
    var savedAt: String?
    var savedAtMilliseconds: Int64
    var bytes: Int64
    var head: Bool
    var tombstone: Bool
    var available: Bool
    var covers: [VersionID]
    var deviceName: String?
    var title: String?

    var cells: [String] {
      let states = [head ? "current" : nil, tombstone ? "deleted" : nil, available || tombstone ? nil : "bytes gone"]
      return [
        "\(version)", TimeText.iso(milliseconds: savedAtMilliseconds), "\(bytes)",
        states.compactMap(\.self).joined(separator: ", "), Printable.text(deviceName ?? ""),
        Printable.text(title ?? ""),
      ]
    }
  }
  /// What is printed for programs: slots, or one with its versions.
  private struct Listed: Encodable {
    struct Slot: Encodable {
      var slot: String
      var versionCount: Int
      var headCount: Int
    }
    var player: PlayerID
    var slots: [Slot]?
    var slot: String?
    var versions: [Version]?
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      let path = ["players", "\(player.id)"]
      guard let slot else {
        let slots = try await client.pages(of: Slots.self, path + ["slots"]) {
          ($0.slots, $0.next.map { ["after": $0] })
        }
        if options.json {
          let listed = slots.map { Listed.Slot(slot: $0.slot, versionCount: $0.versions, headCount: $0.heads) }
          return try Output.document(Listed(player: player.id, slots: listed))
        }
        let rows = slots.map { [Printable.text($0.slot), "\($0.versions)", "\($0.heads)"] }
        return Output.text(TextTable.text(["slot", "versions", "current"], rows))
      }
      let versions = try await client.pages(of: Versions.self, path + ["versions"], query: ["slot": slot]) {
        ($0.versions, $0.next.map { ["before": "\($0)"] })
      }
      if options.json {
        let listed = versions.map { version in
          var version = version
          version.savedAt = AdminMoment.text(version.savedAtMilliseconds)
          return version
        }
        return try Output.document(Listed(player: player.id, slot: slot, versions: listed))
      }
      Output.text(
        TextTable.text(["version", "saved", "bytes", "state", "device", "title"], versions.map(\.cells)))
    }
  }
}

/// `keepsake admin save show`: shows a version, or writes its bytes into a file.
struct AdminSaveShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a version's types and values, or write its bytes into a file.",
    examples: [
      "keepsake admin save show --url URL --key-file key PLAYER VERSION"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Argument(help: "The version's id.")
  var version: VersionArgument

  @Option(
    name: .shortAndLong, help: ArgumentHelp("Write the bytes into this file instead.", valueName: "file"),
    completion: .file())
  var output: String?

  @Flag(name: .shortAndLong, help: "Replace a file that exists.")
  var force = false

  @OptionGroup var color: ColorOptions

  private struct Written: Encodable {
    var player: PlayerID
    var version: VersionID
    var output: String
    var bytes: Int
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      if let output { try OutputFile.check(output, mayReplace: force) }
      let bytes = try await options.client().bytes(of: version.id, of: player.id)
      guard let output else {
        let inspection = try InspectCommand.inspection(of: OpenedFile(bytes, at: "the save"))
        guard options.json else { return Output.bytes(Data(inspection.text(paint: color.terminal.paint).utf8)) }
        try SpellingRoom.check(inspection)
        return Output.bytes(inspection.json())
      }
      try bytes.write(to: URL(fileURLWithPath: output), options: .atomic)
      if options.json {
        return try Output.document(
          Written(player: player.id, version: version.id, output: output, bytes: bytes.count))
      }
      Output.text("\(Printable.text(output)): \(CountText.of(bytes.count, "byte"))")
    }
  }
}

extension AdminClient {
  fileprivate func bytes(of version: VersionID, of player: PlayerID) async throws -> Data {
    try await send("GET", ["players", "\(player)", "versions", "\(version)", "bytes"])
  }
}

/// `keepsake admin save diff`: compares two versions.
struct AdminSaveDiffCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff", abstract: "Show the differences between two versions, field by field.",
    discussion: "Exit status: 0 if both have the same contents, and 1 if they differ.",
    examples: [
      "keepsake admin save diff --url URL --key-file key PLAYER VERSION CURRENT"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Argument(help: "The older version's id.")
  var from: VersionArgument

  @Argument(help: "The newer version's id.")
  var to: VersionArgument

  @OptionGroup var color: ColorOptions

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      var sides: [ArchiveInspection] = []
      for version in [from.id, to.id] {
        let bytes = try await client.bytes(of: version, of: player.id)
        let inspection = try InspectCommand.inspection(of: OpenedFile(bytes, at: "the version \(version)"))
        try SpellingRoom.check(inspection)
        sides.append(inspection)
      }
      let difference = ArchiveDifference(from: sides[0], to: sides[1])
      if options.json {
        Output.bytes(difference.json())
      } else if !difference.isEmpty {
        Output.bytes(Data(difference.text(paint: color.terminal.paint).utf8))
      }
      guard difference.isEmpty else { throw ExitCode(DiffCommand.different) }
    }
  }
}

/// `keepsake admin save restore`: makes an earlier version the newest one.
struct AdminSaveRestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Make an earlier version the newest one of its slot.",
    discussion: """
      The cloud makes a new version with the earlier one's contents, which the player's devices fetch like any other. \
      Nothing is lost: the history keeps what it replaces, and restoring that undoes it.
      """,
    examples: [
      "keepsake admin save restore --url URL --key-file key PLAYER VERSION --reason ticket-17"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Argument(help: "The version's id.")
  var version: VersionArgument

  @Option(name: .long, help: "Why. The audit log has it: no names of people.")
  var reason: String

  @Option(
    name: .customLong("as"),
    help: ArgumentHelp(
      "The new version's id, 32 hexadecimal digits: it is made once. A random one if left out.", valueName: "id"))
  var new: VersionArgument?

  private struct Restored: Codable {
    var player: PlayerID?
    var version: VersionID
    var slot: String
    var changed: Bool
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      var source = SystemRandomNumberGenerator()
      var restored = try await send(new?.id ?? VersionID(using: &source), client)
      restored.player = player.id
      if options.json { return try Output.document(restored) }
      Output.text(
        restored.changed
          ? "restored in \(Printable.text(restored.slot)), as the version \(restored.version)"
          : "\(Printable.text(restored.slot)) shows it already, or was restored before")
    }
  }

  /// Restores it as a new version of this id. A failure that leaves open whether it was done names it: with another
  /// one, what the player has saved since would be replaced.
  private func send(_ id: VersionID, _ client: AdminClient) async throws -> Restored {
    do {
      let answer = try await client.send(
        "POST", ["players", "\(player.id)", "versions", "\(version.id)", "restore"],
        body: ["reason": reason, "id": "\(id)"])
      return try client.decode(Restored.self, answer)
    } catch let failure as CommandFailure where [.unavailable, .temporary].contains(failure.kind) {
      throw CommandFailure(
        failure.kind, "\(failure.message); it may have been restored",
        next: "repeat it with --as \(id): it is restored once")
    }
  }
}
#endif
