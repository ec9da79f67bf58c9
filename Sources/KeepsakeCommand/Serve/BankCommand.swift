#if Cloud
import ArgumentParser
import Foundation
import KeepsakeServer

/// `keepsake bank`: the keys with which the game's own servers order the banks of a cloud, and what an operator does
/// after a restore.
struct BankCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bank",
    abstract: "Manage the keys of the game's own servers, and players' money after a restore.",
    discussion: """
      With a key, a server of the game grants, charges and refunds players' money, and pays receipts. The commands \
      for keys also work while keepsake serve is running, which notices at once. After a backup was put back, \
      players' money is frozen until their devices have shown what they were granted since.
      """,
    subcommands: [
      BankKeyCommand.self, BankKeysCommand.self, BankRemoveKeyCommand.self, BankRestoredCommand.self,
      BankStatusCommand.self, BankReleaseCommand.self,
    ])
}

extension CloudFolderOptions {
  func keys() throws -> ServerKeys {
    let folder = try folder
    try CloudFolder.check(folder)
    return try ServerKeys(data: folder)
  }
}

/// `keepsake bank key`: creates a key.
struct BankKeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key", abstract: "Create a server key, and print it once.",
    discussion: "Only a hash of the key is kept. If you lose the key, remove it and create another one.",
    examples: [
      "keepsake bank key --data cloud --name shop"
    ])

  @OptionGroup var options: CloudFolderOptions

  @Option(name: .long, help: "The name under which the key is listed: which server has it.")
  var name: String

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let key = try options.keys().create(name)
      try CreatedKey(path: options.data, name: name, key: key).show(json: options.json)
    }
  }
}

/// `keepsake bank keys`: lists the keys' names.
struct BankKeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys", abstract: "List the names of all server keys.",
    examples: [
      "keepsake bank keys --data cloud"
    ])

  @OptionGroup var options: CloudFolderOptions

  private struct Keys: Encodable {
    struct Key: Encodable {
      var name: String
    }
    /// The folder of the cloud's data.
    var path: String
    var keys: [Key]
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let names = try options.keys().names()
      if options.json {
        try Output.document(Keys(path: options.data, keys: names.map(Keys.Key.init)))
      } else {
        for name in names { Output.text(Printable.text(name)) }
        if names.isEmpty { Output.text("no server keys yet") }
      }
    }
  }
}

/// `keepsake bank remove-key`: removes a key.
struct BankRemoveKeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove-key", abstract: "Remove a server key: it is refused from now on.",
    examples: [
      "keepsake bank remove-key --data cloud --name shop"
    ])

  @OptionGroup var options: CloudFolderOptions

  @Option(name: .long, help: "The key's name.")
  var name: String

  private struct Removed: Encodable {
    /// The folder of the cloud's data.
    var path: String
    var name: String
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      try options.keys().remove(name)
      if options.json {
        try Output.document(Removed(path: options.data, name: name))
      } else {
        Output.text("removed \(Printable.text(name))")
      }
    }
  }
}
#endif
