#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeStore

/// `keepsake inspect`: shows what is in a file.
struct InspectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Show the contents of an archive, an exported save, a store, a property list, a keyed archive or JSON.",
    discussion: """
      Reads an archive, an exported save, a store's folder or its database, a synced folder, and other programs' \
      property lists (binary and XML), keyed archives (NSKeyedArchiver) and JSON; - is standard input. The format is \
      recognized by the first bytes, not by the name. A store is not changed, and a game or a sync may have it open. \
      With --slot, the current saved game in that slot of a store is shown like an archive: its types and values. Of \
      several files, one that can't be read doesn't stop the others.
      """,
    examples: [
      "keepsake inspect ~/.local/share/com.example.space/default --slot main",
      "keepsake inspect hero.archive",
      "keepsake inspect *.plist --json",
    ])

  @Argument(
    help: ArgumentHelp(
      "Archives, exported saves, stores, synced folders, property lists, keyed archives or JSON files.",
      valueName: "file"),
    completion: .file())
  var files: [String]

  @Option(name: .shortAndLong, help: "Show the saved game in this slot of the store.")
  var slot: String?

  @Option(help: "With --slot: this version instead of the current one; keepsake history lists them.")
  var version: String?

  @OptionGroup var seal: SealOptions

  @Flag(name: .shortAndLong, help: "Show long lists, long texts and all objects in full.")
  var all = false

  @OptionGroup var color: ColorOptions

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func validate() throws {
    guard files.count(where: { $0 == InputKind.standard }) < 2 else {
      throw ValidationError("Only one of the files can be standard input.")
    }
    guard version == nil || slot != nil else { throw ValidationError("--version needs --slot.") }
  }

  /// The result of an inspection.
  enum Finding {
    case store(StoreReport)
    case archive(ArchiveInspection)
    /// The archive is nil if the game keeps none.
    case save(ExportedSave.Report, ArchiveInspection?)
  }

  static func look(
    at path: String, slot: String? = nil, version: String? = nil, seal: SealRequest? = nil
  ) throws -> Finding {
    switch try InputKind(of: path) {
    case .store(let url):
      let store = try StoreReader.open(at: url, seal: seal)
      guard let slot else {
        var report = try store.read { try StoreReport($0, of: store, path: path) }
        report.addRecords(beside: url)
        return .store(report)
      }
      return .archive(try save(in: store, at: path, slot: slot, version: version))
    case .archive(let data):
      guard slot == nil else {
        throw CommandFailure(.usage, "\(path) is not a store, so it has no slots", next: "leave out --slot")
      }
      let opened = try OpenedFile(data, at: path)
      if SaveFileEnvelope.isSaveFile(opened.bytes) {
        let save = try ExportedSave(opened, seal: seal)
        return .save(save.report, try save.inspection())
      }
      var archive = try inspection(of: opened)
      archive.source = InspectedSource(path: path)
      return .archive(archive)
    }
  }

  /// Returns a saved game in a store: a version of a slot, or the one that the slot shows.
  static func save(in store: StoreReader, at path: String, slot: String, version: String?) throws -> ArchiveInspection {
    guard let (bytes, id) = try store.read({ try bytes(of: slot, version, in: $0) }) else {
      throw CommandFailure(
        .noInput, "\(path) has no such save in the slot \(Printable.text(slot))",
        next: "keepsake history lists slots and versions")
    }
    var archive = try inspection(of: OpenedFile(bytes, at: "the save in \(Printable.text(slot))"))
    archive.source = InspectedSource(path: path, slot: slot, version: id.description)
    return archive
  }

  /// Returns the plain bytes of a version of a slot, or of the one that the slot shows, and its id; nil if there is
  /// none.
  private static func bytes(
    of slot: String, _ version: String?, in store: StoreTransaction
  ) throws -> (Data, VersionID)? {
    let slot = SlotName.slot(slot)
    let record: VersionRecord?
    if let version {
      record = try VersionChoice.choose(version, among: try store.wholeHistory(of: slot).map(\.record))
    } else {
      record = try Resolution.view(of: try store.key(of: slot), in: store).winner
    }
    guard let record, !record.tombstone else { return nil }
    return (try store.plainBytes(of: record), record.id)
  }

  /// Inspects an archive, with or without a zstd frame around it, or another program's file.
  ///
  /// - Parameter limits: What an archive may have.
  static func inspection(of file: OpenedFile, limits: ArchiveLimits = .standard) throws -> ArchiveInspection {
    let (data, name) = (file.bytes, file.name)
    var inspection = try file.naming {
      if SavedFile.isForeign(data, named: name) {
        return try naming(name) { try SavedFile(data, named: name).inspection() }
      }
      return try describingErrors(data, at: name) {
        try ArchiveInspection(of: ArchiveFrame.opened(data, limits: limits), limits: limits)
      }
    }
    inspection.wrappings = file.wrappings.map(\.rawValue)
    return inspection
  }

  /// Runs `body`. A failure about the file's contents names the file.
  static func naming<Result>(_ file: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch  where !(error is CommandFailure) || (error as? CommandFailure)?.kind == .data {
      var failure = CommandFailure(error)
      if file != InputKind.standard, !failure.message.hasPrefix(file) {
        failure.message = "\(file): \(failure.message)"
      }
      throw failure
    }
  }

  /// Runs `body` on a file's bytes. If they aren't an archive, the failure states what they begin with.
  static func describingErrors<Result>(_ data: Data, at file: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as ArchiveError where [.notAnArchive, .missing].contains(error.code) {
      if let known = KnownFile(data, named: file) { throw known.failure(at: file) }
      let start = data.prefix(8).map { Hexadecimal.text(UInt64($0)).suffix(2) }.joined(separator: " ")
      let others = SavedFile.isForeign(data) ? "" : ", and not a property list or JSON"
      throw CommandFailure(
        .data, "\(file) is neither a Keepsake archive nor a store\(others)",
        next: data.isEmpty ? "the file is empty" : "it begins with the bytes \(start)")
    }
  }

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let request = try seal.request()
      let terminal = color.terminal
      let progress = ProgressLine(json: json)
      func output(_ file: String) throws -> Data {
        defer { progress.clear() }
        progress.update("reading \(Printable.text(file))")
        return try self.output(of: file, request, terminal) { progress.update($0) }
      }
      guard files.count > 1 else { return Output.bytes(try output(files[0])) }
      var batch = FileBatch(json: json)
      for file in files {
        batch.add(file, heading: terminal.paint("==> \(Printable.text(file)) <==", .heading)) {
          try output(file)
        }
      }
      try batch.end()
    }
  }

  /// Returns what is printed of a file.
  private func output(
    of file: String, _ seal: SealRequest?, _ terminal: Terminal, _ progress: (String) -> Void
  ) throws -> Data {
    func lines(_ text: String) -> Data { Data((text + "\n").utf8) }
    let finding = try Self.look(at: file, slot: slot, version: version, seal: seal)
    progress("showing \(Printable.text(file))")
    switch finding {
    case .store(let report):
      return try json ? Output.data(report) : lines(report.text(on: terminal))
    case .archive(let inspection):
      guard json else { return Data(text(of: inspection, terminal).utf8) }
      try Self.naming(file) { try SpellingRoom.check(inspection) }
      return inspection.json()
    case .save(let report, let inspection):
      if json { return try report.json(with: inspection, at: file) }
      return lines(report.lines.joined(separator: "\n"))
        + Data((inspection.map { "\n" + text(of: $0, terminal) } ?? "").utf8)
    }
  }
}

extension InspectCommand {
  private func text(of inspection: ArchiveInspection, _ terminal: Terminal) -> String {
    all
      ? inspection.text(longest: .max, paint: terminal.paint)
      : inspection.text(paint: terminal.paint)
  }
}
#endif
