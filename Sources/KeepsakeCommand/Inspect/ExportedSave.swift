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
    var slot: String
    var version: String
    var savedAt: String
    var savedAtMilliseconds: Int64
    /// The size of the save, uncompressed.
    var bytes: Int
    var title: String?
    var playtime: Double?
    var progress: Double?
    var custom: [String: String]
    var thumbnailBytes: Int?
    /// Nil without a seal.
    var seal: Protection?
  }

  let file: SaveFile
  let report: Report

  /// Opens an exported save. Without a secret, signatures are trusted.
  ///
  /// - Throws: `CommandFailure` that states what can be done about the file.
  init(_ data: Data, seal request: SealRequest?) throws {
    (file, report) = try Self.describingErrors {
      let envelope = try SaveFileEnvelope(data)
      let seal = envelope.game.flatMap { request?.fileSeal(game: $0) }
      let file = try SaveFile(envelope, seal, adoptsUnsealed: true)
      return (file, Report(file, envelope, checked: seal != nil))
    }
  }

  /// Returns the bytes of the save in an exported one; other bytes are returned as they are.
  static func plain(_ data: Data, seal: SealRequest?) throws -> Data {
    SaveFileEnvelope.isSaveFile(data) ? try ExportedSave(data, seal: seal).file.bytes : data
  }

  /// Returns what is in the save; nil if it is neither an archive nor another known file.
  func inspection() throws -> ArchiveInspection? {
    if SavedFile.isForeign(file.bytes) { return try SavedFile(file.bytes, named: report.slot).inspection() }
    guard ArchiveFrame.isArchive(file.bytes) || ArchiveFrame.isFrame(file.bytes) else { return nil }
    return try ArchiveInspection(of: ArchiveFrame.opened(file.bytes))
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
    playtime = file.metadata.playtime
    progress = file.metadata.progress
    custom = file.metadata.custom
    thumbnailBytes = file.metadata.thumbnail?.count
    seal = envelope.game.map { Protection(kind: envelope.kind.rawValue, game: $0, checked: checked) }
  }

  /// Returns the report for programs: one document with what is in the save, null if that isn't an archive.
  func json(with inspection: ArchiveInspection?) -> Data {
    // The inspection writes its own JSON.
    let archive = inspection.map { $0.json() } ?? Data("null\n".utf8)
    return Data("{\"save\": \(Output.json(self)), \"archive\": ".utf8) + archive + Data("}\n".utf8)
  }

  /// The report for people, one line for each item.
  var lines: [String] {
    var lines = [
      "exported save of the slot \(Printable.text(slot)), \(Printable.size(Int64(bytes)))",
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
    if let playtime { lines.append("played: \(playtime) s") }
    if let thumbnailBytes { lines.append("thumbnail: \(Printable.size(Int64(thumbnailBytes)))") }
    lines += custom.sorted { $0.key < $1.key }.map { "\(Printable.text($0.key)): \(Printable.text($0.value))" }
    return lines
  }
}
#endif
