#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// `keepsake import`: makes an exported save the newest version of a slot.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import an exported save into a store.",
    discussion: """
      Makes a new version, which becomes the slot's only current one. Nothing is lost: the version that was current \
      before stays in the history, and the output says how to restore it. If the save is already the current one, \
      nothing is written. The game must not have the store open. Only the game can tell whether it can load the save. \
      A synced file changes at the next keepsake sync.
      """,
    examples: [
      #"keepsake import STORE hero.save --slot "from the phone""#
    ])

  @Argument(help: "The store's folder, or a folder that keepsake sync syncs.", completion: .directory)
  var store: String

  @Argument(help: "The exported save.", completion: .file())
  var file: String

  @Option(name: .shortAndLong, help: "The slot; by default the one from which the save was exported.")
  var slot: String?

  @OptionGroup var seal: SealOptions

  @Flag(name: .long, help: "Accept a file without a seal into a store with one; anyone could have changed it.")
  var unsealed = false

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let progress = ProgressLine(json: json)
      progress.update("reading \(file)")
      let data = try ExportedSave.describingErrors { try Self.contents(of: file) }
      let opened = try StoreInput.open(store, seal: seal.request())
      progress.update("writing \(Printable.size(Int64(data.count)))")
      var answer: Answer
      do {
        answer = try Self.add(data, to: slot, in: opened, adoptsUnsealed: unsealed)
        (answer.path, answer.output) = (file, store)
      } catch {
        // The first failure is the one to report.
        try? opened.close()
        throw error
      }
      try opened.close()
      progress.clear()
      if json { try Output.document(answer) } else { Output.text(answer.lines(store: store).joined(separator: "\n")) }
    }
  }

  private static func contents(of path: String) throws -> Data {
    // Distinguishes a store from a file, and doesn't block on what is neither.
    guard SaveFileEnvelope.isSaveFile(try InputKind.beginning(of: path)) else {
      throw StoreError(.misuse, "\(path) is not an exported save")
    }
    return try SaveFile.contents(of: URL(fileURLWithPath: path))
  }

  /// Commits a version with the bytes of an exported save, in place of all heads; nothing if the save is the only head
  /// already.
  static func add(_ data: Data, to slot: String?, in store: Store, adoptsUnsealed: Bool) throws -> Answer {
    let save: SaveFile
    do {
      save = try ExportedSave.describingErrors { try SaveFile(data, store.fileSeal, adoptsUnsealed: adoptsUnsealed) }
    } catch var failure as CommandFailure where failure.kind == .permission && SaveFileEnvelope.isUnsealed(data) {
      failure.next = "use --unsealed to import it anyway"
      throw failure
    }
    let slot = slot ?? save.slot
    let now = Int64(Date().timeIntervalSince1970 * 1_000)
    let writer = store.writer
    return try store.submit([(slot, save.bytes)]) { transaction, kept in
      var random = SystemRandomNumberGenerator()
      let key = try transaction.key(of: slot)
      let view = try Resolution.view(of: key, in: transaction, policy: .newest)
      let contents = kept.flatMap(\.hashes)
      let shown = view.heads.map(\.id)
      var answer = Answer(
        slot: slot, fromVersion: save.version.description, version: "",
        bytes: save.bytes.count, incidents: store.incidents.map(\.message),
        heads: (shown + view.parents.filter { !shown.contains($0) }).map(\.description))
      if !view.isConflict, let winner = view.winner, winner.contents == contents, winner.metadata == save.metadata {
        answer.version = winner.id.description
        answer.changed = false
        return answer
      }
      let id = VersionID(using: &random)
      answer.version = id.description
      let draft = SaveDraft(
        id: id, slot: key.text, parents: .everyHead, contents: contents, length: save.bytes.count,
        metadata: save.metadata,
        savedAtMilliseconds: now)
      do {
        try DeviceCommit.apply(CommitDraft(saves: [draft]), now: now, writer: writer, in: &transaction, using: &random)
      } catch let error as CommitError {
        throw CommandFailure(.data, error.description, next: "name another slot with --slot")
      }
      return answer
    }.wait()
  }

  struct Answer: Encodable {
    /// The exported save, as it was named.
    var path = ""
    /// The store, as it was named.
    var output = ""
    var slot: String
    /// The version that was exported, by its id in the store that it comes from.
    var fromVersion: String
    /// The version that the slot shows after the import.
    var version: String
    /// The size of the save, uncompressed.
    var bytes: Int
    /// What opening the store had to repair.
    var incidents: [String] = []
    /// The heads before the import, the winner first.
    var heads: [String]
    /// False if the slot showed this save already, so that nothing was written.
    var changed = true

    func lines(store: String) -> [String] {
      if !changed { return ["\(Printable.text(slot)) already contains this save, as \(version)"] }
      var lines = ["imported \(fromVersion) into \(Printable.text(slot)) as \(version)"]
      if let head = heads.first {
        lines.append("to undo: keepsake restore \(Quoted.shell(store)) \(Quoted.shell(slot)) \(head)")
      }
      return lines + (SlotName.followingStep(slot).map { [$0] } ?? [])
    }
  }
}
#endif
