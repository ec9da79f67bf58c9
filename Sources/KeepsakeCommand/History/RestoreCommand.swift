#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// `keepsake restore`: makes an earlier version the newest.
struct RestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Restore an earlier version of a save.",
    discussion: """
      Makes a new version with the contents of the earlier one, which becomes the slot's only current one. Nothing is \
      lost: the version that was current before stays in the history and can be restored in turn. A synced file \
      changes at the next keepsake sync.
      """,
    examples: [
      "keepsake restore STORE main 5f2c"
    ])

  @Argument(help: "The store's folder, or a folder that keepsake sync syncs.", completion: .directory)
  var store: String

  @Argument(help: "The slot. That of a synced file is file:<path>, that of a tracked file tracked:<name>.")
  var slot: String

  @Argument(help: "The version's id, as keepsake history shows it; it may be shortened.")
  var version: String

  @OptionGroup var seal: SealOptions

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let opened = try StoreInput.open(store, seal: seal.request())
      let progress = ProgressLine(json: json)
      var answer: Answer
      do {
        answer = try Self.restore(version, of: slot, in: opened) { progress.update($0) }
        answer.path = store
      } catch {
        // The first failure is the one to report.
        try? opened.close()
        throw error
      }
      try opened.close()
      progress.clear()
      if json {
        try Output.document(answer)
      } else {
        Output.text("restored \(Printable.text(slot)) from \(answer.fromVersion) as \(answer.version)")
        if let head = answer.heads.first {
          Output.text("to undo: keepsake restore \(Quoted.shell(store)) \(Quoted.shell(slot)) \(head)")
        }
        if let line = SlotName.followingStep(slot) { Output.text(line) }
      }
    }
  }

  /// Commits a version with the bytes of the one whose id begins with `version`, in place of all heads.
  static func restore(
    _ version: String, of slot: String, in store: Store, progress: (String) -> Void = { _ in }
  ) throws -> Answer {
    var random = SystemRandomNumberGenerator()
    return try store.write { transaction in
      let typed = slot
      let slot = SlotName.slot(typed)
      let history = try transaction.wholeHistory(of: slot)
      guard !history.isEmpty else { throw StoreInput.noSlot(slot, among: try transaction.slots()) }
      let chosen = try VersionChoice.choose(version, among: history.map(\.record))
      for (index, hash) in chosen.contents.enumerated() {
        progress("checking part \(index + 1) of \(chosen.contents.count)")
        _ = try transaction.plainContent(hash)
      }
      let key = try transaction.key(of: slot)
      let view = try Resolution.view(of: key, in: transaction, policy: .newest)
      let id = VersionID(using: &random)
      let now = Int64(Date().timeIntervalSince1970 * 1_000)
      var metadata = chosen.metadata
      if metadata.device != nil { metadata.device = DeviceName.current }
      let draft = SaveDraft(
        id: id, slot: key.text, parents: .everyHead, contents: chosen.contents, length: chosen.length,
        metadata: metadata, savedAtMilliseconds: now, tombstone: chosen.tombstone)
      _ = try DeviceCommit.apply(
        CommitDraft(saves: [draft], cells: [], wallet: []), now: now, writer: store.writer, in: &transaction,
        using: &random)
      let shown = view.heads.map(\.id)
      return Answer(
        slot: typed, fromVersion: chosen.id.description, version: id.description,
        incidents: store.incidents.map(\.message),
        heads: (shown + view.parents.filter { !shown.contains($0) }).map(\.description))
    }
  }

  struct Answer: Encodable {
    /// The store, as it was named.
    var path = ""
    var slot: String
    /// The version whose bytes were restored.
    var fromVersion: String
    /// The new version.
    var version: String
    /// What opening the store had to repair.
    var incidents: [String] = []
    /// The heads before the restore, the winner first.
    var heads: [String]
  }
}

/// A version as it is given on a command line.
enum VersionChoice {
  /// The fewest digits of an id: fewer would mean another version after a few more saves.
  private static let fewestDigits = 4
  /// How many versions are listed if the digits could mean several.
  private static let shown = 5

  /// Returns the one version whose id begins with `text`.
  static func choose(_ text: String, among records: [VersionRecord]) throws -> VersionRecord {
    let wanted = text.lowercased()
    guard wanted.count >= fewestDigits else {
      throw CommandFailure(
        .noInput, "\"\(text)\" is too short for a version: give at least \(fewestDigits) digits of its id",
        next: "keepsake history lists the versions that are kept")
    }
    let found = records.filter { $0.id.description.hasPrefix(wanted) }
    guard let first = found.first else {
      throw CommandFailure(
        .noInput, "the slot has no version \"\(text)\"", next: "keepsake history lists the versions that are kept")
    }
    guard found.count == 1 else {
      let ids = found.prefix(shown).map(\.id.description).joined(separator: ", ")
      throw CommandFailure(
        .noInput, "\(found.count) versions begin with \"\(text)\"",
        next: "give more digits of the id: \(ids)\(found.count > shown ? ", ..." : "")")
    }
    return first
  }
}

/// Text in a form that a shell takes as one word.
enum Quoted {
  static func shell(_ text: String) -> String {
    // Nothing in it means anything to a shell, or to the command.
    if text.wholeMatch(of: /[A-Za-z0-9_.\/][A-Za-z0-9_.\/:@%+,=-]*/) != nil { return text }
    return "'" + text.replacingOccurrences(of: "'", with: "'\\''") + "'"
  }
}
#endif
