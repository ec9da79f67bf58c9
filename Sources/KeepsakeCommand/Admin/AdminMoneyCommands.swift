#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication

/// `keepsake admin money`: a player's money.
struct AdminMoneyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "money", abstract: "Show a player's money; grant, charge or refund.",
    subcommands: [
      AdminMoneyShowCommand.self, AdminMoneyGrantCommand.self, AdminMoneyChargeCommand.self,
      AdminMoneyRefundCommand.self,
    ])
}

/// What a player has, as the cloud answers.
private struct AdminBalances: Decodable {
  var balances: [String: Int64]
  var owed: [String: Int64]
  var alreadyDone: Bool?

  var text: String {
    let currencies = Set(balances.keys).union(owed.keys).sorted()
    let table = TextTable.text(
      ["currency", "balance", "owed"],
      currencies.map { [Printable.text($0), "\(balances[$0] ?? 0)", "\(owed[$0] ?? 0)"] })
    return alreadyDone == true ? "it had been done already\n" + table : table
  }
}

/// The same as it is printed for programs.
private struct AdminAccount: Encodable {
  var player: PlayerID
  /// The order that was given.
  var order: String?
  /// The purchase that was refunded.
  var purchase: String?
  var alreadyDone: Bool?
  var balances: [String: Int64]
  var owed: [String: Int64]

  init(_ player: PlayerID, _ found: AdminBalances, order: String? = nil, purchase: String? = nil) {
    (self.player, self.order, self.purchase) = (player, order, purchase)
    (alreadyDone, balances, owed) = (found.alreadyDone, found.balances, found.owed)
  }
}

/// `keepsake admin money show`: shows a player's money.
struct AdminMoneyShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show what a player has and owes.",
    examples: [
      "keepsake admin money show --url URL --key-file key PLAYER"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      let answer = try await client.send("GET", ["players", "\(player.id)", "money"])
      let found = try client.decode(AdminBalances.self, answer)
      if options.json { return try Output.document(AdminAccount(player.id, found)) }
      Output.text(found.text)
    }
  }
}

/// What an order has.
struct AdminOrderOptions: ParsableArguments {
  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Argument(help: "The amount.")
  var amount: Int64

  @Argument(help: "The currency.")
  var currency: String

  @Option(name: .long, help: "Why. The player's ledger and the audit log have it.")
  var reason: String

  @Option(
    name: .long,
    help: ArgumentHelp(
      "The order's id, 32 hexadecimal digits: an order counts once. A new one if left out.", valueName: "id"))
  var order: OperationArgument?

  func send(_ kind: String, _ options: AdminOptions) async throws {
    try await CommandRun.reporting(json: options.json) {
      var source = SystemRandomNumberGenerator()
      let client = try options.client()
      let id = order?.id ?? OperationID(using: &source)
      let found = try await send(id, kind, client)
      if options.json { return try Output.document(AdminAccount(player.id, found, order: "\(id)")) }
      Output.text(found.text)
    }
  }

  /// Sends the order. A failure that leaves open whether it was done names its id: with another one it would count
  /// again.
  private func send(_ id: OperationID, _ kind: String, _ client: AdminClient) async throws -> AdminBalances {
    do {
      let answer = try await client.send(
        "POST", ["players", "\(player.id)", "money", "orders"],
        body: [
          "id": "\(id)", "kind": kind, "currency": currency, "amount": amount,
          "reason": reason,
        ])
      return try client.decode(AdminBalances.self, answer)
    } catch let failure as CommandFailure where [.unavailable, .temporary].contains(failure.kind) {
      throw CommandFailure(
        failure.kind, "\(failure.message); the order may have been done",
        next: "repeat it with --order \(id): an order counts once")
    }
  }
}

/// `keepsake admin money grant`: gives a player money.
struct AdminMoneyGrantCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "grant", abstract: "Give a player money, once.",
    examples: [
      "keepsake admin money grant --url URL --key-file key PLAYER 100 gems --reason sorry"
    ])

  @OptionGroup var options: AdminOptions
  @OptionGroup var order: AdminOrderOptions

  func run() async throws { try await order.send("grant", options) }
}

/// `keepsake admin money charge`: takes money from a player.
struct AdminMoneyChargeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "charge", abstract: "Take money from a player, once. What the player lacks is a debt.",
    examples: [
      "keepsake admin money charge --url URL --key-file key PLAYER 100 gems --reason mistake"
    ])

  @OptionGroup var options: AdminOptions
  @OptionGroup var order: AdminOrderOptions

  func run() async throws { try await order.send("charge", options) }
}

/// `keepsake admin money refund`: takes a purchase back.
struct AdminMoneyRefundCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refund", abstract: "Take a purchase back, once: the money returns, and its goods are gone.",
    examples: [
      "keepsake admin money refund --url URL --key-file key PLAYER PURCHASE --reason sorry"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Argument(help: "The purchase's id, as the player's ledger has it.")
  var purchase: OperationArgument

  @Option(name: .long, help: "Why. The player's ledger and the audit log have it.")
  var reason: String

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      let answer = try await client.send(
        "POST", ["players", "\(player.id)", "money", "refunds"], body: ["purchase": "\(purchase.id)", "reason": reason])
      let found = try client.decode(AdminBalances.self, answer)
      if options.json { return try Output.document(AdminAccount(player.id, found, purchase: "\(purchase.id)")) }
      Output.text(found.text)
    }
  }
}
#endif
