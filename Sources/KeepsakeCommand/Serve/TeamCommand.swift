#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer

/// `keepsake team`: apps of one studio, and the containers that they share.
struct TeamCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "team",
    abstract: "Manage teams of apps, and the containers that their apps share.",
    discussion: """
      A shared container has, for each player, what several games of one studio keep together: a purse, or an unlocked \
      hero. A game may use those of its team that it was entitled to, to read and write or only to read; any other \
      game learns nothing of them. The commands also work while keepsake serve is running, which notices at once.
      """,
    subcommands: [
      TeamCreateCommand.self, TeamListCommand.self, TeamAddCommand.self, TeamRemoveCommand.self, TeamShareCommand.self,
      TeamGrantCommand.self, TeamWithdrawCommand.self,
    ])

  /// What a command has done.
  struct Done: Encodable {
    /// The folder of the cloud's data.
    var path: String
    var team: String
    var app: String?
    var container: String?
    var access: String?
  }

  /// Carries out a change, and says what was done.
  static func change(
    _ options: CloudFolderOptions, _ done: Done, _ text: String, _ body: (AppRegistry) throws -> Void
  ) async throws {
    try await CommandRun.reporting(json: options.json) {
      try body(try options.registry())
      if options.json { try Output.document(done) } else { Output.text(Printable.text(text)) }
    }
  }
}

/// An app of a team.
struct TeamMemberOptions: ParsableArguments {
  @OptionGroup var options: CloudFolderOptions

  @Argument(help: "The team.")
  var team: String

  @Argument(help: "The app's name, as keepsake app list shows it.")
  var app: String
}

/// An app of a team, and one of the team's shared containers.
struct TeamRightOptions: ParsableArguments {
  @OptionGroup var options: CloudFolderOptions

  @Argument(help: "The team.")
  var team: String

  @Argument(help: "The shared container.")
  var container: String

  @Argument(help: "The app's name, as keepsake app list shows it.")
  var app: String
}

/// `keepsake team create`: creates a team.
struct TeamCreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a team.",
    examples: [
      "keepsake team create --data cloud studio"
    ])

  @OptionGroup var options: CloudFolderOptions

  @Argument(help: "The team's name: visible ASCII characters without spaces.")
  var team: String

  func run() async throws {
    let done = TeamCommand.Done(path: options.data, team: team)
    try await TeamCommand.change(options, done, "created \(team)") { try $0.createTeam(team) }
  }
}

/// `keepsake team list`: lists the teams.
struct TeamListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List all teams, their apps, and what these may do with which shared container.",
    examples: [
      "keepsake team list --data cloud"
    ])

  @OptionGroup var options: CloudFolderOptions

  private struct Teams: Encodable {
    /// The folder of the cloud's data.
    var path: String
    var teams: [Team]
  }
  private struct Team: Encodable {
    var team: String
    var created: String
    var createdMilliseconds: Int64
    var appNames: [String]
    var containers: [Container]
  }
  private struct Container: Encodable {
    var container: String
    /// 16 hexadecimal digits.
    var share: String
    var created: String
    var createdMilliseconds: Int64
    /// What each app that is entitled may do: `readWrite` or `readOnly`.
    var rights: [String: String]
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let registry = try options.registry()
      let (apps, all) = (try registry.list(), try registry.teams())
      let teams = all.map { Self.shown($0, apps) }
      if options.json { return try Output.document(Teams(path: options.data, teams: teams)) }
      let rows = teams.flatMap { team in
        let members = team.appNames.map(Printable.text).joined(separator: ", ")
        return team.containers.isEmpty
          ? [[Printable.text(team.team), members, "", ""]]
          : team.containers.map { container in
            [
              Printable.text(team.team), members, container.container,
              container.rights.sorted { $0.key < $1.key }.map {
                Printable.text($0.key) + ($0.value == ContainerAccess.readOnly.rawValue ? " (only reads)" : "")
              }.joined(separator: ", "),
            ]
          }
      }
      Output.text(TextTable.text(["team", "apps", "container", "used by"], rows))
    }
  }

  private static func shown(_ team: AppRegistry.Team, _ apps: [AppRegistry.App]) -> Team {
    let names = Dictionary(apps.map { ($0.id, $0.name) }) { $1 }
    return Team(
      team: team.name, created: TimeText.iso(milliseconds: team.createdMilliseconds),
      createdMilliseconds: team.createdMilliseconds,
      appNames: apps.filter { $0.team == team.name && $0.revokedMilliseconds == nil }.map(\.name),
      containers: team.shares.map { share in
        Container(
          container: share.name, share: share.id, created: TimeText.iso(milliseconds: share.createdMilliseconds),
          createdMilliseconds: share.createdMilliseconds,
          rights: share.access.reduce(into: [:]) { all, one in
            if let access = one.access { all[names[one.app] ?? one.app] = access.rawValue }
          })
      })
  }
}

/// `keepsake team add`: adds an app to a team.
struct TeamAddCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add an app to a team.",
    discussion: "The app may use none of the team's containers until keepsake team grant.",
    examples: [
      "keepsake team add --data cloud studio dungeon"
    ])

  @OptionGroup var member: TeamMemberOptions

  func run() async throws {
    let done = TeamCommand.Done(path: member.options.data, team: member.team, app: member.app)
    try await TeamCommand.change(member.options, done, "\(member.app) is in \(member.team)") {
      try $0.add(member.app, to: member.team)
    }
  }
}

/// `keepsake team remove`: removes an app from its team.
struct TeamRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove an app from its team, with its rights to the team's containers.",
    examples: [
      "keepsake team remove --data cloud studio dungeon"
    ])

  @OptionGroup var member: TeamMemberOptions

  func run() async throws {
    let done = TeamCommand.Done(path: member.options.data, team: member.team, app: member.app)
    try await TeamCommand.change(member.options, done, "\(member.app) is in no team") {
      try $0.remove(member.app, from: member.team)
    }
  }
}

/// `keepsake team share`: creates a shared container.
struct TeamShareCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "share", abstract: "Create a container that apps of a team can share.",
    discussion: "Games ask for it by its name. No app may use it until keepsake team grant.",
    examples: [
      "keepsake team share --data cloud studio studio.coins"
    ])

  @OptionGroup var options: CloudFolderOptions

  @Argument(help: "The team.")
  var team: String

  @Argument(help: "The container's name: a-z, 0-9, dots and hyphens.")
  var container: String

  func run() async throws {
    let done = TeamCommand.Done(path: options.data, team: team, container: container)
    try await TeamCommand.change(options, done, "\(team) has \(container)") { try $0.share(container, in: team) }
  }
}

/// `keepsake team grant`: lets an app use a shared container.
struct TeamGrantCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "grant", abstract: "Let an app of a team use one of its shared containers.",
    discussion: """
      Granting again with or without --read-only changes what the app may do. An app that may only read sees what the \
      others save, and has no part in the money.
      """,
    examples: [
      "keepsake team grant --data cloud studio studio.coins dungeon",
      "keepsake team grant --data cloud studio studio.coins atlas --read-only",
    ])

  @OptionGroup var right: TeamRightOptions

  @Flag(name: .long, help: "The app may only read.")
  var readOnly = false

  func run() async throws {
    let access: ContainerAccess = readOnly ? .readOnly : .readWrite
    let done = TeamCommand.Done(
      path: right.options.data, team: right.team, app: right.app, container: right.container, access: access.rawValue)
    let text = "\(right.app) may \(readOnly ? "read" : "use") \(right.container)"
    try await TeamCommand.change(right.options, done, text) {
      try $0.entitle(right.app, to: right.container, of: right.team, access)
    }
  }
}

/// `keepsake team withdraw`: takes an app's right to a shared container back.
struct TeamWithdrawCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "withdraw", abstract: "Take an app's right to a shared container back.",
    discussion: """
      Its devices are refused there from their next request on. They play on with what they have, and are told; \
      nothing is deleted, and keepsake team grant lets them back in.
      """,
    examples: [
      "keepsake team withdraw --data cloud studio studio.coins dungeon"
    ])

  @OptionGroup var right: TeamRightOptions

  func run() async throws {
    let done = TeamCommand.Done(path: right.options.data, team: right.team, app: right.app, container: right.container)
    try await TeamCommand.change(right.options, done, "\(right.app) may not use \(right.container)") {
      try $0.entitle(right.app, to: right.container, of: right.team, nil)
    }
  }
}
#endif
