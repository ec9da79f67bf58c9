#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer

/// `keepsake admin audit`: shows what the studio's staff have done, and checks that nothing of it was removed.
struct AdminAuditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit", abstract: "Show the audit log, or check that no row of it was changed or removed.",
    discussion: """
      Works beside a running server, and changes nothing. Each row has a hash that covers the rows before it. \
      --verify checks all of them, and prints the last hash: note it outside of this machine, and give it to the next \
      check with --noted, which then also finds that the whole log was made anew. Of players, devices, versions and \
      orders the log has hashes only: --player finds the rows of one whose id you know.
      """,
    examples: [
      "keepsake admin audit --data cloud --limit 20",
      "keepsake admin audit --data cloud --verify",
    ])

  @OptionGroup var options: CloudDatabaseOptions

  @Flag(name: .long, help: "Check all rows instead of showing the newest.")
  var verify = false

  @Option(name: .long, help: ArgumentHelp("With --verify: a hash that an earlier check printed.", valueName: "hash"))
  var noted: String?

  @Option(name: .long, help: ArgumentHelp("Only rows about this player.", valueName: "id"))
  var player: PlayerArgument?

  @Option(name: .long, help: "The most rows to show, the newest first.")
  var limit = 100

  private struct Rows: Encodable {
    var path: String
    var rows: [Row]
  }
  private struct Row: Encodable {
    var number: Int64
    var at: String?
    var atMilliseconds: Int64
    /// The name of the key.
    var name: String
    var act: String
    var request: String
    var outcome: String
    /// What else is known, such as `reason=ticket 17`.
    var details: [String]
    var playerSHA256: ContentHash?
    var subjectSHA256: ContentHash?

    init(_ row: AuditReader.Row) {
      (number, at, atMilliseconds) = (row.number, AdminMoment.text(row.atMilliseconds), row.atMilliseconds)
      (name, act, request, outcome) = (row.name, row.act, row.request, row.result)
      details = row.details.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      (playerSHA256, subjectSHA256) = (row.player, row.subject)
    }
  }

  private struct Verified: Encodable {
    var path: String
    var rowCount: Int64
    /// Of the last row.
    var sha256: ContentHash?
  }

  func validate() throws {
    guard verify || noted == nil else { throw ValidationError("--noted needs --verify.") }
    guard noted.map({ ContentHash($0) != nil }) ?? true else {
      throw ValidationError("--noted takes a hash of 64 hexadecimal digits.")
    }
    guard (1...1_000_000).contains(limit) else { throw ValidationError("--limit takes a number from 1 to 1000000.") }
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let reader = try options.audit()
      if verify { return try check(reader) }
      var rows: [AuditReader.Row] = []
      try reader.rows(of: player?.id, limit: limit) { rows.append($0) }
      if options.json { return try Output.document(Rows(path: options.data, rows: rows.map(Row.init))) }
      Output.text(
        TextTable.text(
          ["when", "who", "act", "result", "player", "details"],
          rows.map { row in
            [
              TimeText.iso(milliseconds: row.atMilliseconds), Printable.text(row.name), row.act, row.result,
              row.player.map { String($0.description.prefix(8)) } ?? "",
              Printable.text(
                row.details.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")),
            ]
          }))
    }
  }

  private func check(_ reader: AuditReader) throws {
    let found = try reader.verify(noted: noted.flatMap { ContentHash($0) })
    if let problem = found.problem {
      throw CommandFailure(
        .data, "the audit log isn't whole: \(problem)", next: "compare it with a backup: keepsake cloud restore")
    }
    if options.json {
      return try Output.document(Verified(path: options.data, rowCount: found.rows, sha256: found.last))
    }
    Output.text("\(CountText.of(Int(found.rows), "row")), none changed or removed")
    if let last = found.last { Output.text("note this hash: \(last)") }
  }
}
#endif
