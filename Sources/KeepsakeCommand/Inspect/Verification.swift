#if Cloud
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeStore

/// Whether one file or store is sound.
struct Verdict: Codable, Equatable {
  enum Kind: String, Codable {
    case archive, store
    /// An exported save.
    case save
    /// Its kind can't be recognized.
    case unknown
  }

  enum State: String, Codable {
    case sound
    /// Cut off, altered, or not what it should be.
    case damaged
    /// Written by a newer program: neither sound nor damaged as far as this one can determine.
    case newer
    /// A file that was named, and isn't one of Keepsake's.
    case foreign
    /// It doesn't exist, or the system doesn't allow reading it.
    case unreadable
  }

  var path: String
  var kind: Kind
  var state: State
  /// The size of what was checked, uncompressed; nil if it isn't sound.
  var bytes: Int64?
  /// The size of the file; nil for a store, and if it can't be read.
  var fileBytes: Int64?
  /// What was found inside, or what is wrong.
  var message: String
  /// What a person can do.
  var next: String?
  /// The exit status if it were alone.
  private(set) var status: Int32 = 0

  private enum CodingKeys: CodingKey {
    case path, kind, state, bytes, fileBytes, message, next
  }

  init(_ path: String, _ kind: Kind, bytes: Int64, fileBytes: Int64? = nil, message: String) {
    (self.path, self.kind, self.bytes, self.fileBytes, self.message) = (path, kind, bytes, fileBytes, message)
    state = .sound
  }

  /// - Parameter isForeign: Whether the file isn't damaged if it isn't what it should be.
  init(_ path: String, _ kind: Kind, fileBytes: Int64? = nil, failure: CommandFailure, isForeign: Bool = false) {
    (self.path, self.kind, self.fileBytes) = (path, kind, fileBytes)
    state =
      switch failure.kind {
      case .newer: .newer
      case .noInput, .exists, .io, .permission, .temporary, .unavailable, .usage: .unreadable
      case .data: isForeign ? .foreign : .damaged
      case .software: .damaged
      }
    message = failure.message
    next = failure.next
    status = state == .damaged ? VerifyCommand.unsound : failure.kind.rawValue
  }

  func line(on terminal: Terminal) -> String {
    let word = terminal.paint(state.rawValue, state == .sound ? .good : .bad)
    let line = "\(word)  \(Printable.text(path)): \(Printable.text(message))"
    return next.map { "\(line)\n  \(Printable.text($0))" } ?? line
  }
}

/// Checks archives, stores, and those that are found in folders.
struct Verification: Codable {
  var files: [Verdict] = []
  var unsound = 0
  /// The highest exit status of all files; a foreign one doesn't hide that another is damaged.
  var status: Int32 {
    let isDamaged = files.contains { $0.state == .damaged }
    return files.filter { !isDamaged || $0.state != .foreign }.map(\.status).max() ?? 0
  }
  /// Files in folders that are of no known kind.
  var skipped = 0

  private enum CodingKeys: CodingKey {
    case files, unsound, skipped
  }

  /// The most files and folders below those that were named.
  private static let maximumEntries = 1_000_000
  /// The extension of archives, if they have one: a file with it in a folder is checked whatever it begins with.
  private static let nameExtension = "keepsake"

  private struct Entry {
    var path: String
    /// Whether it was named by the caller, and not found in a folder.
    var isNamed: Bool
  }

  static func run(
    on paths: [String], seal: SealRequest? = nil, progress: (String) -> Void, each: (Verdict) -> Void
  ) -> Verification {
    var report = Verification()
    func add(_ verdict: Verdict) {
      report.files.append(verdict)
      if verdict.state != .sound { report.unsound += 1 }
      each(verdict)
    }
    var entries: [Entry] = []
    for path in paths {
      do {
        entries += try Self.entries(at: path) { unread, error in
          add(Verdict(unread, .unknown, failure: CommandFailure(error)))
        }
      } catch {
        add(Verdict(path, .unknown, failure: CommandFailure(error).withoutInspectAdvice))
      }
    }
    var bytes: Int64 = 0
    for (index, entry) in entries.enumerated() {
      progress("\(index) of \(entries.count) checked, \(Printable.size(bytes))")
      guard let verdict = verdict(on: entry, seal, progress) else {
        report.skipped += 1
        continue
      }
      bytes &+= verdict.fileBytes ?? verdict.bytes ?? 0
      add(verdict)
    }
    return report
  }

  var summary: String {
    let passed = skipped == 0 ? "" : "; \(CountText.of(skipped, "other file")) skipped"
    return unsound == 0
      ? "\(files.count) checked, all sound\(passed)" : "\(files.count) checked, \(unsound) not sound\(passed)"
  }

  // MARK: Finding

  private static func hasFolder(at path: String) -> Bool {
    var isFolder: ObjCBool = false
    return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue
  }

  /// Returns a file or store by itself, or what is in a folder, sorted by name. Links are followed only where they are
  /// named. What can't be read goes to `unread`, and the rest is found all the same.
  private static func entries(at path: String, unread: (String, any Error) -> Void) throws -> [Entry] {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
      throw CommandFailure.nothing(at: path)
    }
    guard isFolder.boolValue, !isStore(path) else { return [Entry(path: path, isNamed: true)] }
    var entries: [Entry] = []
    var folders = [path]
    var count = 0
    while let folder = folders.popLast() {
      var below: [String] = []
      let names: [String]
      do {
        names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
      } catch {
        unread(folder, error)
        continue
      }
      for name in names {
        count += 1
        guard count <= maximumEntries else {
          throw CommandFailure(
            .data, "there are more than \(maximumEntries) files below \(path)", next: "name one of its subfolders")
        }
        let entry = folder + (folder.hasSuffix("/") ? "" : "/") + name
        let type: FileAttributeType?
        do {
          type = try FileManager.default.attributesOfItem(atPath: entry)[.type] as? FileAttributeType
        } catch {
          // Foundation can't name such a file again.
          unread(entry, name.contains("\u{FFFD}") ? CommandFailure.undecodableName : error)
          continue
        }
        if type == .typeDirectory, !isStore(entry) { below.append(entry) }
        // The shared data of a game lies in the folder of its store.
        if type == .typeDirectory, isStore(entry), hasFolder(at: entry + "/shared") { below.append(entry + "/shared") }
        if type == .typeRegular || (type == .typeDirectory && isStore(entry)) {
          entries.append(Entry(path: entry, isNamed: false))
        }
      }
      folders += below.reversed()
    }
    return entries
  }

  private static func isStore(_ folder: String) -> Bool {
    FileManager.default.fileExists(atPath: folder + "/" + Store.databaseName)
  }

  // MARK: Checking

  /// Returns nil for something that was only found in a folder and isn't Keepsake's.
  private static func verdict(on entry: Entry, _ seal: SealRequest?, _ progress: (String) -> Void) -> Verdict? {
    var kind = Verdict.Kind.unknown
    var fileBytes: Int64?
    do {
      if isStore(entry.path) {
        kind = .store
        return try store(at: URL(fileURLWithPath: entry.path, isDirectory: true), entry.path, seal, progress)
      }
      let beginning = try InputKind.beginning(of: entry.path)
      let isDatabase = beginning == InputKind.databaseMagic
      let mayBeArchive =
        ArchiveFrame.isArchive(beginning) || ArchiveFrame.isFrame(beginning)
        || entry.path.hasSuffix("." + nameExtension)
      let isSave = SaveFileEnvelope.isSaveFile(beginning)
      guard entry.isNamed || isDatabase || isSave || mayBeArchive else { return nil }
      if mayBeArchive { kind = .archive }
      if isSave { kind = .save }
      switch try InputKind(of: entry.path) {
      case .store(let url):
        kind = .store
        return try store(at: url, entry.path, seal, progress)
      case .archive(let data):
        fileBytes = Int64(data.count)
        // In a folder, other programs' compressed files are none of ours.
        let opened = try OpenedFile(data, at: entry.path, opens: entry.isNamed)
        kind = isOurs(opened) ? .archive : .unknown
        if entry.isNamed, kind == .unknown {
          let words = try SavedFile(opened).words
          throw CommandFailure(
            .data, "not a save of Keepsake: \(opened.wrappings.opening)\(words)", next: "keepsake inspect reads it")
        }
        if SaveFileEnvelope.isSaveFile(opened.bytes) {
          kind = .save
          return try save(opened, of: Int64(data.count), seal)
        }
        let archive = try opened.naming { try ArchiveFrame.opened(opened.bytes) }
        // Another program's compressed file.
        if !entry.isNamed, archive.count != data.count, !ArchiveFrame.isArchive(archive) { return nil }
        let header = try opened.naming {
          try InspectCommand.describingErrors(opened.bytes, at: opened.name) { try ArchiveInspection.verify(archive) }
        }
        return Verdict(
          entry.path, .archive, bytes: Int64(header.byteCount), fileBytes: fileBytes,
          message:
            """
            \(opened.wrappings.opening)archive of \(Printable.size(Int64(header.byteCount))), \
            \(CountText.of(header.objectCount, "object")), root \(header.rootType)
            """)
      }
    } catch let error as StoreError where error.code == .misuse {
      // Another program's database, or a store that a game has to upgrade first.
      guard entry.isNamed else { return nil }
      let isForeign = !isStore(entry.path)
      return Verdict(
        entry.path, isForeign ? .unknown : .store, failure: CommandFailure(error), isForeign: isForeign)
    } catch let failure as CommandFailure where failure == KnownFile.database.failure(at: entry.path) {
      return entry.isNamed ? Verdict(entry.path, .unknown, failure: failure, isForeign: true) : nil
    } catch {
      return Verdict(
        entry.path, kind, fileBytes: fileBytes, failure: CommandFailure(error).withoutInspectAdvice,
        isForeign: kind == .unknown)
    }
  }

  /// Whether a file begins as one of Keepsake's, or is called one.
  private static func isOurs(_ file: OpenedFile) -> Bool {
    ArchiveFrame.isArchive(file.bytes) || ArchiveFrame.isFrame(file.bytes) || SaveFileEnvelope.isSaveFile(file.bytes)
      || file.path.hasSuffix("." + nameExtension)
  }

  /// Checks the file as a whole, its seal, the save's hash, and every value if it is an archive.
  private static func save(
    _ opened: OpenedFile, of fileBytes: Int64, _ seal: SealRequest?
  ) throws -> Verdict {
    let save = try ExportedSave(opened, seal: seal)
    let plain = save.file.bytes
    let isArchive = ArchiveFrame.isArchive(plain) || ArchiveFrame.isFrame(plain)
    if isArchive { try ArchiveInspection.verify(ArchiveFrame.opened(plain)) }
    let unchecked = save.report.seal.map { $0.checked ? "" : ", signature not checked (--secret-file)" } ?? ""
    return Verdict(
      opened.path, .save, bytes: Int64(plain.count), fileBytes: fileBytes,
      message:
        """
        \(opened.wrappings.opening)exported save of the slot \(save.report.slot), \
        \(Printable.size(Int64(plain.count)))\(isArchive ? "" : ", not an archive")\(unchecked)
        """)
  }

  /// Checks the database itself, every row, every content against its hash, every saved game that is an archive, and
  /// the game's own tables.
  private static func store(
    at url: URL, _ path: String, _ seal: SealRequest?, _ progress: (String) -> Void
  ) throws -> Verdict {
    let store = try StoreReader.open(at: url, seal: seal)
    if let problem = try store.problems().first {
      throw CommandFailure(
        .data, "the database is damaged: \(problem)", next: "keepsake inspect shows what can still be read")
    }
    let records = try RecordsReader.open(in: StoreReport.folder(of: url))
    if let problem = try records?.problems().first {
      throw CommandFailure(
        .data, "the records are damaged: \(problem)", next: "run keepsake doctor to see what a repair would do")
    }
    let report = try store.read { try StoreReport($0, of: store, path: path) }
    var checked: Set<ContentHash> = []
    var bytes: Int64 = 0
    var archives = 0
    var unknown = 0
    for (index, slot) in report.slots.enumerated() {
      for version in try store.read({ try $0.history(of: slot.slotKey ?? slot.slot) }) where !version.record.tombstone {
        progress("\(Printable.text(path)): slot \(index + 1) of \(report.slots.count), \(Printable.size(bytes))")
        do {
          guard let plain = try store.read({ try content(of: version.record, checked: &checked, in: $0) }) else {
            continue
          }
          bytes &+= Int64(plain.count)
          guard ArchiveFrame.isArchive(plain) || ArchiveFrame.isFrame(plain) else {
            unknown += 1
            continue
          }
          try ArchiveInspection.verify(ArchiveFrame.opened(plain))
          archives += 1
        } catch {
          var failure = CommandFailure(error).withoutInspectAdvice
          failure.message = "version \(version.record.id) of the slot \(Printable.text(slot.slot)): \(failure.message)"
          failure.next = "go back to another version with keepsake restore; keepsake history lists them"
          throw failure
        }
      }
    }
    for content in report.contents {
      guard let hash = ContentHash(content.sha256), checked.insert(hash).inserted else { continue }
      bytes &+= Int64(try store.read { try $0.plainContent(hash).count })
    }
    let others =
      unknown == 0
      ? "" : ", " + CountText.of(unknown, "save that is not an archive", plural: "saves that are not archives")
    let tables = try records.map { ", " + CountText.of(try $0.tables().count, "table") + " of records" } ?? ""
    let unchecked = report.seal == nil || store.checksSeal ? "" : ", signatures not checked (--secret-file)"
    return Verdict(
      path, .store, bytes: bytes,
      message:
        """
        store with \(CountText.of(report.slots.count, "slot")), \
        \(CountText.of(report.contents.count, "content")), \
        \(CountText.of(archives, "saved game"))\(others)\(tables)\(unchecked)
        """)
  }

  /// Returns the bytes of a version; nil if they aren't here or were checked before.
  private static func content(
    of record: VersionRecord, checked: inout Set<ContentHash>, in store: StoreTransaction
  ) throws -> Data? {
    var isNew = false
    for hash in record.contents {
      guard try store.hasContent(hash) else { return nil }
      if checked.insert(hash).inserted { isNew = true }
    }
    guard isNew else { return nil }
    return try store.plainBytes(of: record)
  }
}
#endif
