import Foundation
import GRDB
import KeepsakeReplication

@testable import KeepsakeStore

extension GoldenStore {
  /// Everything that a store contains, in lines that a person can read: equal if and only if a game and its sync would
  /// see the same. They don't contain whether the store is sealed, nor how many bytes a content takes.
  static func portrait(of transaction: StoreTransaction) throws -> [String] {
    try facts(transaction) + wallet(transaction) + values(transaction) + versions(transaction) + contents(transaction)
      + traffic(transaction)
  }

  private static func json(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  private static func facts(_ transaction: StoreTransaction) throws -> [String] {
    let names = try String.fetchAll(
      transaction.database, sql: "SELECT name FROM fact WHERE name NOT LIKE 'wallet%' AND name <> 'seal' ORDER BY name")
    let facts = try transaction.facts()
    let own: [String: Int]? = try transaction.fact("of its own")
    let parcels = try transaction.adoptedParcels()
    let locals = try transaction.localSlots().sorted()
    return [
      "facts: \(names.joined(separator: ", "))",
      """
      cloud: \(facts.container?.description ?? "none"), \(try json(facts.cursor)), caught up \(facts.caughtUp), heard \
      at \(facts.lastFetchedMilliseconds ?? 0)
      """,
      """
      \(facts.serverOffsetMilliseconds) ms to the server's clock, \(facts.moves ?? 0) moves, refused \(facts.isRefused)
      """,
      "arrivals: \(facts.hasArrivals), deferred \(facts.arrivalsNotDownloaded)", "of its own: \(try json(own))",
      "adoption: \(try json(transaction.adoptionNote()))", "adopted: \(try json(parcels))",
      "local slots: \(locals.joined(separator: ", "))",
      "declarations: \(try json(locals.map { try transaction.localDeclaration(of: $0) }))",
      "base of level.dat: \(try transaction.fileBase(of: SlotKey.file("level.dat").text)?.description ?? "none")",
    ]
  }

  private static func wallet(_ transaction: StoreTransaction) throws -> [String] {
    guard let state = try transaction.wallet() else { return ["no wallet"] }
    let wallet = Wallet(state)
    func sorted<Value>(_ table: [String: Value]) -> String {
      table.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    }
    let balances = wallet.currencies.map { "\($0) \(wallet.total($0)) \(wallet.spendable($0)) \(wallet.pending($0))" }
    return [
      "chain: \(state.chain) follows \(state.follows?.description ?? "none")", "head: \(try json(state.head))",
      "acknowledged: \(try json(state.acknowledged))", "totals: \(try json(state.totals))",
      "balances: \(sorted(state.balances))",
      "statement: \(state.statement), bound \(state.isBound), needs \(sorted(state.needs))",
      "shown: \(balances.joined(separator: ", "))",
    ]
      + (try state.operations.map { "operation: \(try json($0))" }) + (try state.late.map { "late: \(try json($0))" })
      + (try state.waiting.map { "waiting: \(try json($0))" })
      + (try transaction.walletEntries(newest: 100).map { entry in
        let operation = entry.operation
        var known = try transaction.performedOperation(operation.id) == operation.fingerprint ? "performed" : "unknown"
        if let key = operation.kind.key, try transaction.hasClaimed(key) { known += ", claimed" }
        return "entry \(entry.number), \(entry.status), \(known): \(try json(operation))"
      })
      + (try transaction.walletNotices().map { "notice \($0.number), \($0.verdict): \($0.operation.id)" })
  }

  private static func values(_ transaction: StoreTransaction) throws -> [String] {
    var lines = try transaction.cells(in: nil).map { "cell \($0.key): \(try json($0.state))" }
    let preferences = try transaction.preferences()
    lines += try preferences.kept.map { "preference \($0.name): \(try $0.bytes().base64EncodedString())" }
    lines.append("unreadable preferences: \(preferences.unreadable)")
    for board in try transaction.boards().sorted(by: { $0.board < $1.board }) {
      lines.append("board \(board.board), \(board.order): \(board.scores) of \(board.players)")
      let found = try transaction.topScores(100, on: board.board, board.order)
      lines += found.entries.map {
        """
        score \($0.player) \($0.value) at \($0.dateMilliseconds), \($0.id), \
        \($0.context?.base64EncodedString() ?? "no context")
        """
      }
      lines.append("objections: \(found.objections.count)")
    }
    return lines
  }

  private static func versions(_ transaction: StoreTransaction) throws -> [String] {
    var lines: [String] = []
    let notDownloaded = try Set(transaction.notDownloadedVersions())
    for bytes in try Data.fetchAll(transaction.database, sql: "SELECT id FROM version ORDER BY position") {
      guard let id = VersionID(bytes: bytes), let version = try transaction.version(id) else {
        throw StoreError(.damaged, "a version is gone")
      }
      var marks = version.acknowledged ? ["acknowledged"] : []
      if version.offered { marks.append("offered") }
      if try transaction.isPinned(id) { marks.append("pinned") }
      if try transaction.isCovered(id) { marks.append("covered") }
      if try transaction.wasPruned(version.record) { marks.append("thinned") }
      if notDownloaded.contains(id) { marks.append("deferred") }
      lines.append("version \(try json(version.record)) \(marks.joined(separator: " "))")
    }
    for slot in try transaction.slots().sorted() {
      let history = try transaction.history(of: slot)
      lines.append(
        "slot \(slot.debugDescription): heads \(try transaction.heads(of: slot)), history \(history.map(\.record.id))")
      lines += try history.map { version in
        let bytes = try version.record.contents.isEmpty ? Data() : transaction.plainBytes(of: version.record)
        return "bytes of \(version.record.id): \(bytes.count), \(ContentHash(of: bytes))"
      }
    }
    return lines
  }

  private static func contents(_ transaction: StoreTransaction) throws -> [String] {
    try transaction.contentSummaries().map { content in
      let plain = try transaction.plainContent(content.hash)
      let base = content.base?.description ?? "nothing"
      let depth = try transaction.cloudDepth(of: content.hash).map { ", \($0) deep in the cloud" } ?? ""
      return
        "content \(ContentHash(of: plain)): \(content.length) bytes on \(base), \(content.depth) deep\(depth)"
    }
  }

  private static func traffic(_ transaction: StoreTransaction) throws -> [String] {
    try transaction.outbox(limit: 100).map { "outbox \(try json($0))" }
      + transaction.staged().map { "staged \(try json($0))" }
  }
}
