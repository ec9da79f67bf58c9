#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// `keepsake export`: writes one saved game into one file.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write one save of a store to a file.",
    discussion: """
      Use it for a bug report or to move a save: keepsake import and the game itself can import the file. It contains \
      the save, its title and picture, and the time when it was saved; keepsake inspect, diff and verify read it. The \
      store is not changed. The file has the store's seal, if there is one (this needs --secret-file), unless \
      --unsealed is given.
      """,
    examples: [
      "keepsake export STORE main hero.save"
    ])

  @Argument(help: "The store's folder, or a folder that keepsake sync syncs.", completion: .directory)
  var store: String

  @Argument(help: "The slot. That of a synced file is file:<path>, that of a tracked file tracked:<name>.")
  var slot: String

  @Argument(help: "The file to write.", completion: .file())
  var file: String

  @Option(help: "This version instead of the current one; its id may be shortened.")
  var version: String?

  @OptionGroup var seal: SealOptions

  @Flag(name: .long, help: "Write a file without the store's seal, which anyone can read and change.")
  var unsealed = false

  @Flag(name: .shortAndLong, help: "Replace the file if there is one.")
  var force = false

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let progress = ProgressLine(json: json)
      let answer = try Self.export(
        slot, version, of: store, to: file, seal: try seal.request(), unsealed: unsealed, force: force
      ) { progress.update($0) }
      progress.clear()
      if json {
        try Output.document(answer)
      } else {
        Output.text(
          "exported \(Printable.text(slot)), version \(answer.version), to \(Printable.text(file)) "
            + "(\(Printable.size(Int64(answer.fileBytes)))\(answer.seal.map { ", \($0.kind)" } ?? ""))")
      }
    }
  }

  static func export(
    _ slot: String, _ version: String?, of storePath: String, to path: String, seal: SealRequest?,
    unsealed: Bool = false, force: Bool = false, progress: (String) -> Void = { _ in }
  ) throws -> Answer {
    let store = try StoreInput.url(of: storePath)
    try OutputFile.check(path, mayReplace: force, apartFrom: [StoreReport.folder(of: store)])
    let reader = try StoreReader.open(at: store, seal: seal)
    progress("reading \(Printable.text(slot))")
    let save = try reader.read { transaction in
      let record = try record(of: slot, version, in: transaction)
      return SaveFile(record, bytes: try transaction.plainBytes(of: record))
    }
    progress("compressing \(Printable.size(Int64(save.bytes.count)))")
    let fileSeal = unsealed ? FileSeal.none : reader.fileSeal
    let bytes = try save.encoded(fileSeal)
    progress("writing \(Printable.size(Int64(bytes.count)))")
    try AtomicFile.write(bytes, to: URL(fileURLWithPath: path))
    return Answer(
      path: storePath, slot: slot, version: save.version.description, output: path, bytes: save.bytes.count,
      fileBytes: bytes.count, seal: fileSeal.kind == .none ? nil : Protection(kind: fileSeal.kind.rawValue))
  }

  private static func record(of slot: String, _ version: String?, in transaction: StoreTransaction) throws
    -> VersionRecord
  {
    let slot = SlotName.slot(slot)
    let history = try transaction.wholeHistory(of: slot)
    guard !history.isEmpty else { throw StoreInput.noSlot(slot, among: try transaction.slots()) }
    let chosen: VersionRecord?
    if let version {
      chosen = try VersionChoice.choose(version, among: history.map(\.record))
    } else {
      chosen = try Resolution.view(of: try transaction.key(of: slot), in: transaction, policy: .newest).winner
    }
    guard let chosen, !chosen.tombstone else {
      throw CommandFailure(
        .noInput,
        version == nil
          ? "the slot \"\(slot)\" is empty: its save was deleted" : "that version records the deletion of the save",
        next: "choose an earlier version with --version; keepsake history lists them")
    }
    return chosen
  }

  struct Protection: Encodable {
    /// `signed` or `sealed`.
    var kind: String
  }

  struct Answer: Encodable {
    /// The store.
    var path: String
    var slot: String
    var version: String
    var output: String
    /// The size of the save, uncompressed.
    var bytes: Int
    var fileBytes: Int
    /// Nil without a seal.
    var seal: Protection?
  }
}
#endif
