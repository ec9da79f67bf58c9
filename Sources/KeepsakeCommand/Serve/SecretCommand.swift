#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer

/// `keepsake secret`: the secrets with which a cloud signs its devices' tokens.
struct SecretCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "secret",
    abstract: "Replace the secret of a cloud, and list or forget earlier ones.",
    discussion: """
      The secret signs the tokens of devices, and what banks state. Two are valid at a time: after a rotation, devices \
      get new tokens as they sync. The commands also work while keepsake serve is running, which notices at once. The \
      secret itself is never printed.
      """,
    subcommands: [SecretRotateCommand.self, SecretListCommand.self, SecretForgetCommand.self])
}

extension CloudFolderOptions {
  func secrets() throws -> ServerSecrets {
    let folder = try FolderArgument.url(data)
    try CloudFolder.check(folder)
    return try ServerSecrets(data: folder)
  }
}

/// `keepsake secret rotate`: makes a new secret.
struct SecretRotateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Make a new secret, which signs from now on.",
    discussion: """
      Tokens under the secret before stay valid. Those under the one before that are good only for their renewal, \
      which devices ask for by themselves; seven earlier secrets are kept for them.
      """,
    examples: [
      "keepsake secret rotate --data cloud"
    ])

  @OptionGroup var options: CloudFolderOptions

  private struct Rotated: Encodable {
    /// The folder of the cloud's data.
    var path: String
    var secretCount: Int
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let count = try options.secrets().rotate(now: Int64(Date().timeIntervalSince1970 * 1_000))
      if options.json {
        try Output.document(Rotated(path: options.data, secretCount: count))
      } else {
        Output.text("made a new secret; \(CountText.of(count - 1, "earlier one")) kept")
      }
    }
  }
}

/// `keepsake secret list`: shows how old the secrets are.
struct SecretListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List when the secrets were made, the newest first.",
    examples: [
      "keepsake secret list --data cloud"
    ])

  @OptionGroup var options: CloudFolderOptions

  private struct Ages: Encodable {
    struct Secret: Encodable {
      var created: String
      var createdMilliseconds: Int64
      var valid: Bool
    }
    /// The folder of the cloud's data.
    var path: String
    var secrets: [Secret]
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let ages = try options.secrets().ages()
      let secrets = ages.enumerated().map {
        Ages.Secret(
          created: TimeText.iso(milliseconds: $0.element), createdMilliseconds: $0.element,
          valid: $0.offset < ServerSecrets.valid)
      }
      if options.json { return try Output.document(Ages(path: options.data, secrets: secrets)) }
      for (number, secret) in secrets.enumerated() {
        let use = number == 0 ? "signs" : secret.valid ? "valid" : "for renewal only"
        Output.text("\(secret.created)  \(use)")
      }
    }
  }
}

/// `keepsake secret forget`: ends what earlier secrets signed.
struct SecretForgetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget", abstract: "Forget all secrets except the newest one, because one of them became known.",
    discussion: """
      Devices whose tokens are under an earlier one are refused from now on, and must join their player again with a \
      pairing code. So rotate first, and forget once devices have had time to sync, unless somebody forges tokens. \
      Money that is on its way from one player to another under an earlier secret is lost.
      """,
    examples: [
      "keepsake secret forget --data cloud"
    ])

  @OptionGroup var options: CloudFolderOptions

  private struct Forgotten: Encodable {
    /// The folder of the cloud's data.
    var path: String
    var forgottenCount: Int
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let count = try options.secrets().forgetEarlier()
      if options.json {
        try Output.document(Forgotten(path: options.data, forgottenCount: count))
      } else {
        Output.text("forgot \(CountText.of(count, "earlier secret"))")
      }
    }
  }
}
#endif
