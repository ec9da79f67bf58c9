#if Cloud
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeStore

/// An exported save as commands read it, and as they show it.
struct ExportedSave {
  /// What `keepsake inspect` shows of it, besides what is in the save.
  struct Report: Encodable {
    struct Protection: Encodable {
      /// `signed` or `sealed`.
      var kind: String
      var game: String
      /// False if the secret wasn't given: the signature is then trusted.
      var checked: Bool
    }
    var kind = "save"
    /// What it was opened from, outermost first; nil for a file as it is.
    var wrappings: [Wrapping]?
    var slot: String
    var version: String
    var savedAt: String
    var savedAtMilliseconds: Int64
    /// The size of the save, uncompressed.
    var bytes: Int
    var title: String?
    var playtimeMilliseconds: Double?
    var progress: Double?
    var custom: [String: String]
    var thumbnailBytes: Int?
    /// Nil without a seal.
    var seal: Protection?
  }

  let file: SaveFile
  private(set) var report: Report

  /// Opens an exported save. Without a secret, signatures are trusted.
  ///
  /// - Throws: `CommandFailure` that states what can be done about the file.
  init(_ data: Data, seal request: SealRequest?, maximumBytes: Int = Wrapping.maximumBytes) throws {
    (file, report) = try Self.describingErrors {
      let envelope = try SaveFileEnvelope(data)
      let seal = envelope.game.flatMap { request?.fileSeal(game: $0) }
      let file = try SaveFile(envelope, seal, adoptsUnsealed: true, maximumBytes: maximumBytes)
      return (file, Report(file, envelope, checked: seal != nil))
    }
  }

  /// Opens the exported save that was found in a file.
  init(_ opened: OpenedFile, seal request: SealRequest?, maximumBytes: Int = Wrapping.maximumBytes) throws {
    self = try opened.naming { try ExportedSave(opened.bytes, seal: request, maximumBytes: maximumBytes) }
    if !opened.wrappings.isEmpty { report.wrappings = opened.wrappings }
  }

  /// Returns the save in an exported one, opened in turn; any other file is returned as it is.
  ///
  /// - Parameter maximumBytes: The most bytes that are taken from it, and from each wrapping in it.
  static func plain(
    _ opened: OpenedFile, seal: SealRequest?, maximumBytes: Int = Wrapping.maximumBytes
  ) throws -> OpenedFile {
    guard SaveFileEnvelope.isSaveFile(opened.bytes) else { return opened }
    let exported = try ExportedSave(opened, seal: seal, maximumBytes: maximumBytes)
    var save = try OpenedFile(exported.file.bytes, at: opened.path, maximumBytes: maximumBytes)
    save.wrappings = opened.wrappings + save.wrappings
    return save
  }

  /// Returns what is in the save; nil if it is neither an archive nor another known file.
  func inspection() throws -> ArchiveInspection? {
    let opened = try OpenedFile(file.bytes, at: report.slot)
    let isKnown =
      SavedFile.isForeign(opened.bytes) || ArchiveFrame.isArchive(opened.bytes) || ArchiveFrame.isFrame(opened.bytes)
    return isKnown ? try InspectCommand.inspection(of: opened) : nil
  }

  /// Runs `body`. A failure about an exported save gets advice for such a file, not for a store.
  static func describingErrors<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as StoreError {
      var failure = CommandFailure(error)
      switch error.code {
      case .damaged: failure.next = "export the save again, or ask for a new copy of the file"
      case .tampered: failure.next = "only its game can write a valid one; ask for a new copy of the file"
      case .misuse: failure.next = "use keepsake export to write one; keepsake inspect shows what other files contain"
      default: break
      }
      throw failure
    }
  }
}

extension ExportedSave.Report {
  init(_ file: SaveFile, _ envelope: SaveFileEnvelope, checked: Bool) {
    slot = file.slot
    version = file.version.description
    savedAt = TimeText.iso(milliseconds: file.savedAtMilliseconds)
    savedAtMilliseconds = file.savedAtMilliseconds
    bytes = file.bytes.count
    title = file.metadata.title
    playtimeMilliseconds = file.metadata.playtime.map { $0 * 1_000 }
    progress = file.metadata.progress
    custom = file.metadata.custom
    thumbnailBytes = file.metadata.thumbnail?.count
    seal = envelope.game.map { Protection(kind: envelope.kind.rawValue, game: $0, checked: checked) }
  }

  /// Returns the report for programs: one document with what is in the save, null if that isn't an archive.
  ///
  /// - Throws: `CommandFailure` if it can't be written as JSON.
  func json(with inspection: ArchiveInspection?, at path: String) throws -> Data {
    var json = JSONWriter()
    json.beginObject()
    json.key("archive")
    if let inspection { json.value(json: inspection.json()) } else { json.null() }
    json.key("path")
    json.value(path)
    json.key("save")
    json.value(json: try Output.data(self))
    json.end()
    return json.take() + Data("\n".utf8)
  }

  /// The report for people, one line for each item.
  var lines: [String] {
    var lines = [
      (wrappings ?? []).opening
        + "exported save of the slot \(Printable.text(slot)), \(Printable.size(Int64(bytes)))",
      "version \(version), saved \(savedAt)",
    ]
    if let seal {
      lines.append(
        """
        seal: \(seal.kind) for \
        \(Printable.text(seal.game))\(seal.checked ? ", verified" : ", not checked (--secret-file)")
        """)
    }
    if let title { lines.append("title: \"\(Printable.text(title))\"") }
    if let progress { lines.append("progress: \(progress)") }
    if let playtimeMilliseconds { lines.append("played: \(Printable.duration(playtimeMilliseconds))") }
    if let thumbnailBytes { lines.append("thumbnail: \(Printable.size(Int64(thumbnailBytes)))") }
    lines += custom.sorted { $0.key < $1.key }.map { "\(Printable.text($0.key)): \(Printable.text($0.value))" }
    return lines
  }
}
#endif
