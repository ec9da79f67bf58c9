#if Cloud
import ArgumentParser
import Foundation
import KeepsakeServer

/// `keepsake admin`: what a studio's staff do with players' data.
struct AdminCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "admin",
    abstract: "Help players of a cloud: find, restore, compensate, ban, export and delete.",
    discussion: """
      The commands for keys and for the audit log read the cloud's database, beside a running server. All others ask a \
      running cloud at the port for the studio (keepsake serve --admin-port), with a key whose scopes allow it. Each \
      of them is in the audit log.
      """,
    subcommands: [
      AdminPlayerCommand.self, AdminSaveCommand.self, AdminMoneyCommand.self, AdminDeviceCommand.self,
      AdminWebhookCommand.self, AdminKeyCommand.self, AdminAuditCommand.self,
    ])
}
#endif
