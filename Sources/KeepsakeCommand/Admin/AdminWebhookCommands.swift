#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer

/// `keepsake admin webhook`: what the studio's backends wait for, and dead letters.
struct AdminWebhookCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "webhook", abstract: "Show what webhooks wait for, and send dead letters again.",
    discussion: """
      A dead letter is an event that the backend has refused for a day, or that waited for too long. docs/WEBHOOKS.md \
      says what events there are. The key needs the scope webhooks.
      """,
    subcommands: [AdminWebhookListCommand.self, AdminWebhookDeadCommand.self, AdminWebhookRetryCommand.self])
}

/// A webhook's name as an argument of a command. Any other text is refused before it becomes part of an address.
struct WebhookArgument: ExpressibleByArgument {
  let name: String

  init?(argument: String) {
    guard WebhookEndpoint.isName(argument) else { return nil }
    name = argument
  }
}

extension AdminOptions {
  /// A client for commands that name a webhook.
  fileprivate func webhookClient() throws -> AdminClient {
    var client = try client()
    client.absentAdvice = "keepsake admin webhook list shows the names of the webhooks"
    return client
  }
}

/// `keepsake admin webhook list`: shows the webhooks of a cloud.
struct AdminWebhookListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Show each webhook, whether it takes events, and how many wait.",
    examples: [
      "keepsake admin webhook list --url URL --key-file key"
    ])

  @OptionGroup var options: AdminOptions

  private struct Answer: Decodable {
    struct Endpoint: Decodable {
      var name: String
      var host: String
      var kinds: [String]
      /// `flowing`, `failing` or `stopped`.
      var state: String
      var waiting: Int
      var oldestMilliseconds: Int64?
      var dead: Int
      var dropped: Int64
      var failure: String?
    }
    var endpoints: [Endpoint]
  }
  private struct Listed: Encodable {
    struct Webhook: Encodable {
      var name: String
      var host: String
      var kinds: [String]
      var state: String
      var waitingCount: Int
      var oldest: String?
      var oldestMilliseconds: Int64?
      var deadCount: Int
      var droppedCount: Int64
      var failure: String?

      init(_ endpoint: Answer.Endpoint) {
        (name, host, kinds, state) = (endpoint.name, endpoint.host, endpoint.kinds, endpoint.state)
        (waitingCount, deadCount, droppedCount) = (endpoint.waiting, endpoint.dead, endpoint.dropped)
        (oldest, oldestMilliseconds) = (AdminMoment.text(endpoint.oldestMilliseconds), endpoint.oldestMilliseconds)
        failure = endpoint.failure
      }
    }
    var webhooks: [Webhook]
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      let webhooks = try client.decode(Answer.self, try await client.send("GET", ["webhooks"])).endpoints
      if options.json { return try Output.document(Listed(webhooks: webhooks.map(Listed.Webhook.init))) }
      guard !webhooks.isEmpty else { return Output.text("no webhooks: keepsake serve --webhook sets one up") }
      let rows = webhooks.map { webhook in
        [
          Printable.text(webhook.name), Printable.text(webhook.host), Printable.text(webhook.state),
          "\(webhook.waiting)", AdminMoment.text(webhook.oldestMilliseconds) ?? "", "\(webhook.dead)",
          "\(webhook.dropped)", Printable.text(webhook.failure ?? ""),
        ]
      }
      Output.text(
        TextTable.text(["name", "host", "state", "waiting", "oldest", "dead", "dropped", "last failure"], rows))
    }
  }
}

/// `keepsake admin webhook dead`: lists dead letters.
struct AdminWebhookDeadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead", abstract: "List the dead letters of a webhook, the oldest first.",
    examples: [
      "keepsake admin webhook dead --url URL --key-file key shop"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The webhook's name.")
  var webhook: WebhookArgument

  private struct Page: Decodable {
    struct Event: Decodable {
      var id: OperationID
      var kind: String
      var player: PlayerID?
      var createdMilliseconds: Int64
      var deadMilliseconds: Int64?
      var reason: String?
    }
    var events: [Event]
    var next: Int64?
  }
  private struct Dead: Encodable {
    struct Event: Encodable {
      var webhookEvent: OperationID
      var kind: String
      var player: PlayerID?
      var created: String?
      var createdMilliseconds: Int64
      var dead: String?
      var deadMilliseconds: Int64?
      var reason: String?
    }
    var webhook: String
    var events: [Event]
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let name = webhook.name
      let events = try await options.webhookClient().pages(of: Page.self, ["webhooks", name, "dead"]) { page in
        (page.events, page.next.map { ["after": "\($0)"] })
      }
      if options.json {
        let shown = events.map { event in
          Dead.Event(
            webhookEvent: event.id, kind: event.kind, player: event.player,
            created: AdminMoment.text(event.createdMilliseconds), createdMilliseconds: event.createdMilliseconds,
            dead: AdminMoment.text(event.deadMilliseconds), deadMilliseconds: event.deadMilliseconds,
            reason: event.reason)
        }
        return try Output.document(Dead(webhook: name, events: shown))
      }
      guard !events.isEmpty else { return Output.text("\(name) has no dead letters") }
      let rows = events.map { event in
        [
          "\(event.id)", Printable.text(event.kind), event.player.map { "\($0)" } ?? "",
          TimeText.iso(milliseconds: event.createdMilliseconds), AdminMoment.text(event.deadMilliseconds) ?? "",
          Printable.text(event.reason ?? ""),
        ]
      }
      Output.text(TextTable.text(["event", "kind", "player", "created", "dead since", "reason"], rows))
    }
  }
}

/// `keepsake admin webhook retry`: sends dead letters again.
struct AdminWebhookRetryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry", abstract: "Send dead letters of a webhook again, and what waits at once.",
    discussion: """
      All of them, the oldest first, or the events that are named. They come after what the backend has got of their \
      player since. For when the backend has been repaired.
      """,
    examples: [
      "keepsake admin webhook retry --url URL --key-file key shop"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The webhook's name.")
  var webhook: WebhookArgument

  @Argument(help: "The ids of the events; all dead letters without any.")
  var events: [OperationArgument] = []

  /// As many as one request takes.
  private static let eventsAtOnce = 1_000

  private struct Retried: Decodable {
    var retried: Int
  }
  private struct Answer: Encodable {
    var webhook: String
    var retriedCount: Int
  }

  func validate() throws {
    guard events.count <= Self.eventsAtOnce else {
      throw ValidationError("At most \(Self.eventsAtOnce) events can be named; none means all.")
    }
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let (client, name) = (try options.webhookClient(), webhook.name)
      let body: [String: any Encodable & Sendable] = events.isEmpty ? [:] : ["ids": events.map(\.id)]
      var (count, hasMore) = (0, true)
      while hasMore {
        let answer = try await client.send("POST", ["webhooks", name, "retry"], body: body)
        let retried = try client.decode(Retried.self, answer).retried
        count += retried
        hasMore = events.isEmpty && retried == Self.eventsAtOnce
      }
      if options.json { return try Output.document(Answer(webhook: name, retriedCount: count)) }
      Output.text("\(CountText.of(count, "dead letter")) of \(name) will be sent again")
      // Such as one that was sent again before.
      let others = events.isEmpty ? 0 : Set(events.map(\.id)).count - count
      if others > 0 { Output.text("not among its dead letters: \(CountText.of(others, "event"))") }
    }
  }
}
#endif
