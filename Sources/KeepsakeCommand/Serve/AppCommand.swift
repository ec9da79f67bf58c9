#if Cloud
import ArgumentParser
import Foundation
import KeepsakeServer
import KeepsakeStore

/// `keepsake app`: the games of a cloud, and the keys with which their installs register.
struct AppCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "app",
    abstract: "Manage the apps of a cloud, and the keys with which their installs register.",
    discussion: """
      An app has a name, an id that stays, and keys, of which only hashes are kept. So a key can be replaced without a \
      device noticing. The commands also work while keepsake serve is running, which notices at once. Keys in its \
      settings are accepted as well; each is an app of its own.
      """,
    subcommands: [
      AppCreateCommand.self, AppListCommand.self, AppRotateCommand.self, AppRevokeCommand.self,
    ])
}

extension CloudFolderOptions {
  func registry() throws -> AppRegistry { try AppRegistry(data: FolderArgument.url(data)) }
}

/// `keepsake app create`: creates an app.
struct AppCreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create an app, and print its key once.",
    discussion: """
      With --key-file, the app takes over a key that the server's settings have now: devices that have registered with \
      it are the app's. The key may be removed from the settings afterwards: try first if a device still syncs.
      """,
    examples: [
      "keepsake app create --data cloud --name dungeon",
      "keepsake app create --data cloud --name dungeon --key-file cloud/app-key",
    ])

  @OptionGroup var options: CloudFolderOptions

  @Option(name: .long, help: "The app's name: visible ASCII characters without spaces.")
  var name: String

  @Option(
    name: .long,
    help: ArgumentHelp("Take over the key that is the only line of this file.", valueName: "file"),
    completion: .file())
  var keyFile: String?

  /// An app that has taken over a key.
  private struct Adopted: Encodable {
    /// The folder of the cloud's data.
    var path: String
    var name: String
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      if let key = try options.registry().create(name, adopting: try adopted()).key {
        try CreatedKey(path: options.data, name: name, key: key).show(json: options.json)
      } else if options.json {
        try Output.document(Adopted(path: options.data, name: name))
      } else {
        Output.text("\(Printable.text(name)) has the key that was there")
      }
    }
  }

  private func adopted() throws -> String? {
    guard let keyFile else { return nil }
    guard let bytes = try AtomicFile.read(URL(fileURLWithPath: keyFile), maximumBytes: Self.maximumKeyBytes) else {
      throw CommandFailure(
        .noInput, "there is no file \(Printable.text(keyFile))", next: "name the file that contains the app key")
    }
    return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  private static let maximumKeyBytes = 4_096
}

/// `keepsake app list`: lists the apps with their keys.
struct AppListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List all apps and their keys, revoked ones too.",
    discussion: "A key is shown by the first digits of its SHA-256, by which it is revoked.",
    examples: [
      "keepsake app list --data cloud"
    ])

  @OptionGroup var options: CloudFolderOptions

  private struct Apps: Encodable {
    /// The folder of the cloud's data.
    var path: String
    var apps: [App]
  }
  private struct App: Encodable {
    var name: String
    /// 16 hexadecimal digits.
    var app: String
    var created: String
    var createdMilliseconds: Int64
    var revoked: String?
    var revokedMilliseconds: Int64?
    var keys: [Key]
  }
  private struct Key: Encodable {
    var key: String
    var created: String
    var createdMilliseconds: Int64
    var revoked: String?
    var revokedMilliseconds: Int64?
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let apps = try options.registry().list()
      if options.json { return try Output.document(Apps(path: options.data, apps: apps.map(Self.shown))) }
      let rows = apps.flatMap { app in
        app.keys.map { key in
          [
            Printable.text(app.name), app.id, key.id, TimeText.iso(milliseconds: key.createdMilliseconds),
            (app.revokedMilliseconds ?? key.revokedMilliseconds).map { TimeText.iso(milliseconds: $0) } ?? "",
          ]
        }
      }
      Output.text(TextTable.text(["name", "app", "key", "created", "revoked"], rows))
    }
  }

  private static func shown(_ app: AppRegistry.App) -> App {
    func moment(_ milliseconds: Int64?) -> String? { milliseconds.map { TimeText.iso(milliseconds: $0) } }
    return App(
      name: app.name, app: app.id, created: TimeText.iso(milliseconds: app.createdMilliseconds),
      createdMilliseconds: app.createdMilliseconds, revoked: moment(app.revokedMilliseconds),
      revokedMilliseconds: app.revokedMilliseconds,
      keys: app.keys.map { key in
        Key(
          key: key.id, created: TimeText.iso(milliseconds: key.createdMilliseconds),
          createdMilliseconds: key.createdMilliseconds, revoked: moment(key.revokedMilliseconds),
          revokedMilliseconds: key.revokedMilliseconds)
      })
  }
}

/// `keepsake app rotate`: gives an app a new key.
struct AppRotateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Give an app a new key, and print it once.",
    discussion: """
      The keys from before stay accepted, since installs have them: revoke them once the game has been updated \
      everywhere. Devices that have registered notice nothing.
      """,
    examples: [
      "keepsake app rotate --data cloud --name dungeon"
    ])

  @OptionGroup var options: CloudFolderOptions

  @Option(name: .long, help: "The app's name.")
  var name: String

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let key = try options.registry().rotate(name)
      try CreatedKey(path: options.data, name: name, key: key).show(json: options.json)
    }
  }
}

/// `keepsake app revoke`: revokes one of an app's keys, or the app.
struct AppRevokeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Revoke one of an app's keys, or the app with all its devices.",
    discussion: """
      With --key, no install registers with that key any more; devices that have registered go on. Without it, every \
      device of the app is refused from its next request on. Its players' data stay. Neither can be undone.
      """,
    examples: [
      "keepsake app revoke --data cloud --name dungeon --key 9f86d081"
    ])

  @OptionGroup var options: CloudFolderOptions

  @Option(name: .long, help: "The app's name.")
  var name: String

  @Option(name: .long, help: "The key, as keepsake app list shows it.")
  var key: String?

  private struct Revoked: Encodable {
    /// The folder of the cloud's data.
    var path: String
    var name: String
    /// Nil if the app was revoked.
    var key: String?
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let registry = try options.registry()
      if let key { try registry.revoke(name, key: key) } else { try registry.revoke(name) }
      if options.json {
        try Output.document(Revoked(path: options.data, name: name, key: key))
      } else {
        let what = key.map { "the key \(Printable.text($0)) of \(name)" } ?? name
        Output.text("revoked \(Printable.text(what))")
      }
    }
  }
}
#endif
