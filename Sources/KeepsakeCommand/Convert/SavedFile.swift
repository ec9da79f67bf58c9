#if Cloud
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeInterchange
import KeepsakeStore

/// A file that `inspect`, `diff` and `convert` accept, whichever program wrote it, recognized by its first bytes.
struct SavedFile {
  enum Content {
    /// The bytes of an archive, without a frame around them.
    case archive(Data)
    /// A property list or JSON.
    case values(ObjectGraph)
    /// A property list that NSKeyedArchiver wrote.
    case keyed(PropertyList, ObjectGraph)
  }

  var content: Content
  /// The format it is written in: a keyed archive is a property list, and an archive in tagged form may be in any plain
  /// format.
  var spelling: FileFormat
  var byteCount: Int
  /// What it was opened from, outermost first.
  var wrappings: [Wrapping] = []
  private var isOpenStep = false
  /// In a keyed archive in tagged form: what it says, object by object. Objects that Foundation couldn't read aren't
  /// written like that.
  private(set) var asked: ObjectGraph?

  /// Whether the bytes begin like another program's file that can be read.
  static func isForeign(_ data: Data, named name: String = "") -> Bool {
    isPropertyList(data) || isJSON(data) || isJSON5(name) || OpenStepFile.begins(data)
  }

  /// JSON5 may begin with a comment or with an unquoted name in braces, which can't be recognized by its bytes.
  static func isJSON5(_ name: String) -> Bool { name.lowercased().hasSuffix(".json5") }

  static func isPropertyList(_ data: Data) -> Bool {
    guard !data.isEmpty else { return false }
    do {
      _ = try PropertyList.format(of: data)
      return true
    } catch {
      return false  // The only question is whether.
    }
  }

  static func isBinaryPropertyList(_ data: Data) -> Bool {
    do {
      return try PropertyList.format(of: data) == .binary
    } catch {
      return false  // The only question is whether.
    }
  }

  private static func isJSON(_ data: Data) -> Bool {
    let text = data.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data
    let space: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
    guard let first = text.first(where: { !space.contains($0) }) else { return false }
    if [UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\"")].contains(first) { return true }
    // A single number or word is JSON as well; anything else that begins like one is just text.
    let word = text.drop { space.contains($0) }.prefix { !space.contains($0) }
    if ["true", "false", "null"].contains(where: { word.elementsEqual($0.utf8) }) { return true }
    return word.count <= 400 && word.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
      && word.contains { (0x30...0x39).contains($0) }
  }

  /// Reads what is in a file.
  ///
  /// - Throws: As `init(_:named:)`.
  init(_ file: OpenedFile) throws {
    self = try file.naming { try SavedFile(file.bytes, named: file.name) }
    wrappings = file.wrappings
  }

  /// - Throws: `CommandFailure`, `ArchiveError`, `PropertyListError` or `StructuredFileError` that states what is wrong
  ///   with the file.
  init(_ data: Data, named name: String) throws {
    byteCount = data.count
    if Self.isPropertyList(data) {
      // XML, but not of a property list.
      if let known = KnownFile(data) { throw known.failure(at: name) }
      spelling = try PropertyList.format(of: data) == .xml ? .xml : .binary
      (content, asked) = try Self.content(
        of: PropertyList(data, limits: .inProportion(to: data)), limits: .inProportion(to: data))
    } else if Self.isJSON(data) || Self.isJSON5(name) {
      spelling = .json
      let list: PropertyList
      (list, isOpenStep) = try Self.json(data, named: name)
      (content, asked) = try Self.content(of: list, limits: .standard)
    } else if let list = OpenStepFile.begins(data) ? OpenStepFile.read(data) : nil {
      (spelling, isOpenStep) = (.xml, true)
      (content, asked) = try Self.content(of: list, limits: .inProportion(to: data))
    } else {
      spelling = .archive
      let archive = try InspectCommand.describingErrors(data, at: name) {
        let archive = try ArchiveFrame.opened(data)
        try ArchiveInspection.verify(archive)
        return archive
      }
      content = .archive(archive)
    }
  }

  /// Returns the values of JSON, or of a property list in the format of OpenStep, which begins alike, and whether it
  /// is that.
  private static func json(_ data: Data, named name: String) throws -> (PropertyList, isOpenStep: Bool) {
    guard !isJSON5(name) else { return (try JSONFile.readJSON5(data), false) }
    do {
      return (try JSONFile.read(data), false)
    } catch let error as StructuredFileError {
      if let list = OpenStepFile.read(data) { return (list, true) }
      if let known = KnownFile(data, named: name) { throw known.failure(at: name) }
      throw CommandFailure(
        .data, "expected JSON: \(error)", next: "it isn't a property list in the text format of OpenStep, either")
    }
  }

  private static func content(
    of list: PropertyList, limits: PropertyListLimits
  ) throws -> (Content, asked: ObjectGraph?) {
    switch try TaggedDocument.kind(of: list) {
    case .archive: return (.archive(try ArchiveDocument.script(in: list).encoded()), nil)
    case .values: return (.values(try TaggedDocument.values(in: list)), nil)
    case .keyed:
      let graph = try TaggedDocument.keyed(in: list)
      let written = try KeyedWriter.list(graph)
      return (.keyed(written, ObjectGraph(try KeyedArchive(written).tree(limits: limits))), graph)
    case nil: break
    }
    let archive: KeyedArchive
    do {
      archive = try KeyedArchive(list)
    } catch let error as PropertyListError where error.code == .notAKeyedArchive {
      return (.values(ObjectGraph(list)), nil)
    }
    return (.keyed(list, ObjectGraph(try archive.tree(limits: limits))), nil)
  }

  /// The format, in a few words.
  var words: String {
    let form = isOpenStep ? OpenStepFile.words : spelling.words
    return switch content {
    case .archive: spelling == .archive ? "archive" : "archive as \(form)"
    case .values: form
    case .keyed: spelling == .binary ? "keyed archive" : "keyed archive as \(form)"
    }
  }

  /// Returns the contents in the form in which archives are shown and compared.
  func inspection() throws -> ArchiveInspection {
    switch content {
    case .archive(let data): return try ArchiveInspection(of: data)
    case .values(let graph): return graph.inspection(of: words, byteCount: byteCount)
    case .keyed(let list, let graph):
      var inspection = graph.inspection(of: words, byteCount: byteCount)
      inspection.savedClasses = { KeyedClasses.read(list) }
      return inspection
    }
  }

  func graph() throws -> ObjectGraph {
    switch content {
    case .archive(let data): ObjectGraph(try ArchiveInspection(of: data))
    case .values(let graph), .keyed(_, let graph): graph
    }
  }

  // MARK: Bytes

  /// Returns a file or standard input, opened; of an exported save, the save in it.
  static func opened(at path: String, seal: SealRequest?) throws -> OpenedFile {
    guard case .archive(let data) = try InputKind(of: path) else {
      throw CommandFailure(
        .data, "\(path) is a store", next: "write one of its saves to a file with keepsake export, and convert that")
    }
    return try ExportedSave.plain(OpenedFile(data, at: path), seal: seal)
  }
}
#endif
