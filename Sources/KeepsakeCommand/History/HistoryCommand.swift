#if Cloud
import ArgumentParser
import Foundation
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeStore

/// `keepsake history`: lists every version that is kept.
struct HistoryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "List the versions of one save, or of all saves.",
    discussion: """
      The newest version comes first. If a slot has several heads (a conflict), the winner is the first in "heads" of \
      --json. Pinned versions are kept until the game unpins them. --graph draws which version comes from which: \
      conflicts and merges, one column for each line of development; --svg writes that as a picture. The store is not \
      changed.
      """,
    examples: [
      "keepsake history STORE main",
      "keepsake history STORE main --graph",
    ])

  @Argument(help: "The store's folder, or a folder that keepsake sync syncs.", completion: .directory)
  var store: String

  @Argument(
    help:
      "The slot. That of a synced file is file:<path>, that of a tracked file tracked:<name>. Without it, all slots.")
  var slot: String?

  @Flag(name: .shortAndLong, help: "Draw which version comes from which.")
  var graph = false

  @Option(help: "With --graph: write it to this file as SVG.", completion: .file())
  var svg: String?

  @OptionGroup var seal: SealOptions

  @OptionGroup var color: ColorOptions

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func validate() throws {
    guard svg == nil || graph else { throw ValidationError("--svg needs --graph.") }
    guard !graph || slot != nil else { throw ValidationError("--graph draws one slot: name it.") }
    guard !(graph && json) else { throw ValidationError("--graph and --json can't be used together.") }
  }

  /// Draws the graph of a slot.
  private func draw(_ slot: String, of url: URL) throws {
    if let svg { try OutputFile.check(svg, mayReplace: false, apartFrom: [StoreReport.folder(of: url)]) }
    let graph = try StoreReader.open(at: url, seal: seal.request()).read { transaction in
      try HistoryGraph(of: Self.keys(of: slot, in: transaction)[0], in: transaction)
    }
    guard let svg else { return Output.text(graph.lines(on: color.terminal).joined(separator: "\n")) }
    guard try AtomicFile.create(Data(graph.svg(title: slot).utf8), at: URL(fileURLWithPath: svg)) else {
      throw CommandFailure(.exists, "\(svg) already exists", next: "name another file")
    }
    Output.text(
      "drew \(CountText.of(graph.rows.count, "version")) of \(Printable.text(slot)) in \(Printable.text(svg))")
  }

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let url = try StoreInput.url(of: store)
      if graph, let slot { return try draw(slot, of: url) }
      let progress = ProgressLine(json: json)
      let reports = try StoreReader.open(at: url, seal: seal.request()).read { transaction in
        let slots = try transaction.slots()
        if let slot {
          return try Self.keys(of: slot, in: transaction).map { try SlotReport($0, in: transaction) }
        }
        return try slots.enumerated().map { index, slot in
          progress.update("slot \(index + 1) of \(slots.count)")
          return try SlotReport(slot, in: transaction)
        }
      }
      progress.clear()
      if json {
        try Output.document(Answer(path: store, slots: reports))
      } else {
        Output.text(
          reports.isEmpty ? "no versions yet" : reports.flatMap { $0.lines(on: color.terminal) }.joined(separator: "\n")
        )
      }
    }
  }

  /// Returns the slot keys in the store that a name stands for: at least one.
  private static func keys(of slot: String, in transaction: StoreTransaction) throws -> [String] {
    let slots = try transaction.slots()
    let keys = try SlotName.keys(of: slot).map(\.text).filter { key in
      try slots.contains(key) && !(transaction.history(of: key).isEmpty && transaction.heads(of: key).isEmpty)
    }
    guard !keys.isEmpty else { throw StoreInput.noSlot(slot, among: slots) }
    return keys
  }

  private struct Answer: Encodable {
    /// The store.
    var path: String
    var slots: [SlotReport]
  }
}

/// A store as an argument of the commands.
enum StoreInput {
  /// How many slots are listed if the requested one doesn't exist.
  private static let namesShown = 5

  static func url(of path: String) throws -> URL {
    guard case .store(let url) = try InputKind(of: path) else {
      throw CommandFailure(
        .data, "\(path) is a file, not a store", next: "use keepsake inspect to see what it contains")
    }
    return url
  }

  /// Opens a store to change it. Its game's rules for history aren't known here, so nothing is pruned. What opening had
  /// to repair is announced on standard error.
  static func open(_ path: String, seal: SealRequest?) throws -> Store {
    let url = try url(of: path)
    let store = try Store.open(
      at: url.pathExtension == "sqlite" ? url.deletingLastPathComponent() : url, seal: seal ?? .none,
      history: .everything)
    announce(store)
    return store
  }

  /// Prints what opening a store had to repair, on standard error: whatever the command does, this was changed.
  static func announce(_ store: Store) {
    for incident in store.incidents { Output.complaint("keepsake: " + Printable.text(incident.message)) }
  }

  /// The failure for a slot of which the store has no version.
  static func noSlot(_ slot: String, among slots: [String]) -> CommandFailure {
    guard !slots.contains(slot) else {
      return CommandFailure(
        .noInput, "the save in \"\(SlotName.shown(slot))\" is only in the cloud",
        next: "download it with the game that it is from, then try again")
    }
    let names = slots.prefix(namesShown).map(SlotName.shown).joined(separator: ", ")
    return CommandFailure(
      .noInput, "there is no slot \"\(SlotName.shown(slot))\"",
      next: slots.isEmpty
        ? "the store is empty"
        : slots.count <= namesShown
          ? "it has \(Printable.text(names))" : "it has \(slots.count), among them \(Printable.text(names))")
  }
}
#endif
