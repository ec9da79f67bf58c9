#if Cloud
import ArgumentParser
import Foundation
import KeepsakeServer

/// `keepsake admin key`: the keys of the studio's staff and servers.
struct AdminKeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key", abstract: "Manage the keys of the studio's staff and servers.",
    subcommands: [AdminKeyCreateCommand.self, AdminKeyListCommand.self, AdminKeyRevokeCommand.self])
}

/// `keepsake admin key create`: creates a key.
struct AdminKeyCreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create an admin key, and print it once.",
    discussion: """
      Only a hash of the key is kept. If it is lost, revoke it and create another one. The scopes: read finds players \
      and shows everything of them, saves restores versions, money orders of the bank, devices removes them and \
      unlinks identities, bans bans players, export and delete do so with all of a player's data, webhooks shows what \
      webhooks wait for, and sends dead letters again.
      """,
    examples: [
      "keepsake admin key create --data cloud --name ada --scopes read,saves"
    ])

  @OptionGroup var options: CloudDatabaseOptions

  @Option(name: .long, help: "Whose key it is. The audit log names it.")
  var name: String

  @Option(
    name: .long,
    help: "What it allows, separated by commas: read, saves, money, devices, bans, export, delete, webhooks.")
  var scopes: String

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Good only for players of the game with this app key; may be repeated. All players without it.", valueName: "key")
  )
  var appKey: [String] = []

  func validate() throws { _ = try wanted() }

  private func wanted() throws -> Set<AdminScope> {
    try Set(
      scopes.split(separator: ",", omittingEmptySubsequences: false).map { word in
        guard let scope = AdminScope(rawValue: word.trimmingCharacters(in: .whitespaces)) else {
          let all = AdminScope.allCases.map(\.rawValue).joined(separator: ", ")
          throw ValidationError("--scopes takes words of \(all), separated by commas.")
        }
        return scope
      })
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let (text, key) = try options.keys().create(name, scopes: wanted(), appKeys: appKey)
      try CreatedKey(path: options.data, name: key.name, scopes: key.scopes, key: text).show(json: options.json)
    }
  }
}

/// `keepsake admin key list`: lists the keys.
struct AdminKeyListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List all admin keys with their scopes, revoked ones too.",
    examples: [
      "keepsake admin key list --data cloud"
    ])

  @OptionGroup var options: CloudDatabaseOptions

  private struct Keys: Encodable {
    var path: String
    var keys: [Key]
  }
  private struct Key: Encodable {
    var name: String
    var scopes: [AdminScope]
    /// Whether it is good for players of some apps only.
    var limited: Bool
    var created: String?
    var createdMilliseconds: Int64
    var revoked: String?
    var revokedMilliseconds: Int64?

    init(_ key: AdminKey) {
      (name, scopes, limited) = (key.name, key.scopes, key.isLimitedToApps)
      (createdMilliseconds, revokedMilliseconds) = (key.createdMilliseconds, key.revokedMilliseconds)
      (created, revoked) = (AdminMoment.text(createdMilliseconds), AdminMoment.text(revokedMilliseconds))
    }
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let keys = try options.keys().list()
      if options.json { return try Output.document(Keys(path: options.data, keys: keys.map(Key.init))) }
      let rows = keys.map { key in
        [
          Printable.text(key.name), key.scopes.map(\.rawValue).joined(separator: ","),
          key.isLimitedToApps ? "some apps" : "all", TimeText.iso(milliseconds: key.createdMilliseconds),
          key.revokedMilliseconds.map { TimeText.iso(milliseconds: $0) } ?? "",
        ]
      }
      Output.text(TextTable.text(["name", "scopes", "players", "created", "revoked"], rows))
    }
  }
}

/// `keepsake admin key revoke`: revokes a key.
struct AdminKeyRevokeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Revoke an admin key: it is refused from the next request on.",
    examples: [
      "keepsake admin key revoke --data cloud --name ada"
    ])

  @OptionGroup var options: CloudDatabaseOptions

  @Option(name: .long, help: "The key's name.")
  var name: String

  private struct Revoked: Encodable {
    var path: String
    var name: String
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      try options.keys().revoke(name)
      if options.json {
        try Output.document(Revoked(path: options.data, name: name))
      } else {
        Output.text("revoked \(Printable.text(name))")
      }
    }
  }
}
#endif
