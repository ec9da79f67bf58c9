#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeInterchange

/// One file in another format.
///
/// The result is read back and compared before it is returned. An exception is a keyed archive made from Keepsake's own
/// archive: it has dictionaries where the original has structs, so it is only checked to be readable.
struct Conversion {
  /// How a conversion treats what the target format doesn't have.
  enum Form: String, Codable {
    /// It is an error.
    case exact
    /// It is written in a form that can be converted back.
    case tagged
    /// It is written as people would write it, or left out, and counted.
    case lossy
  }

  var bytes: Data
  var form: Form
  var losses: [PlainForm.Loss] = []

  /// - Parameter form: The requested form; nil for the one that keeps most: tagged for what has types or objects, else
  ///   exact.
  init(of file: SavedFile, to target: FileFormat, form wanted: Form?, progress: (String) -> Void = { _ in }) throws {
    if wanted == .tagged, !target.isPlain {
      throw CommandFailure(
        .data, "--tagged doesn't apply to the format \(target.words)",
        next: "leave --tagged out; it is for JSON and property lists")
    }
    progress("converting \(Printable.size(Int64(file.byteCount)))")
    var room = SpellingRoom(of: file.byteCount)
    switch (file.content, target) {
    case (.archive(let archive), .archive): self.init(archive, .exact)
    case (.keyed(let list, _), .keyed): try self.init(sameObjects: list, target, progress)
    case (.keyed(let list, _), .xml) where wanted ?? .exact == .exact,
      (.keyed(let list, _), .binary) where wanted ?? .exact == .exact:
      try self.init(sameObjects: list, target, progress)
    case (.archive(let archive), _) where target.isPlain && wanted ?? .tagged == .tagged:
      try self.init(tagged: archive, target, progress)
    case (.keyed(let list, _), _) where target.isPlain && wanted ?? .tagged == .tagged:
      let graph = ObjectGraph(try KeyedArchive(list).exactTree())
      try room.take(graph)
      self.init(try Self.encode(TaggedDocument.keyed(graph, for: target), as: target), .tagged)
      progress("checking \(Printable.size(Int64(bytes.count)))")
      let again = try target == .json ? JSONFile.read(bytes) : PropertyList(bytes)
      let read = try TaggedDocument.keyed(in: again)
      guard read == graph else { throw Self.notSame(target) }
      losses = try KeyedFidelity.losses(from: list, to: KeyedWriter.list(read), as: .objects)
    case (.values(let graph), _) where target.isPlain && wanted == .tagged:
      self.init(try Self.encode(TaggedDocument.values(graph, for: target), as: target), .tagged)
      try check(target, progress) { if case .values(let again) = $0.content { again == graph } else { false } }
    case (.values(let graph), .keyed): try self.init(keyed: graph, isLossy: wanted == .lossy, progress)
    case (_, .keyed):
      self.init(try KeyedWriter.list(file.graph()).encoded(as: .binary), .exact)
      try check(target, progress) { if case .keyed = $0.content { true } else { false } }
    case (.keyed(let list, let graph), .archive):
      try self.init(plain: graph, target, isLossy: wanted == .lossy, room, progress)
      let again = ObjectGraph(try ArchiveInspection(of: bytes))
      losses += try KeyedFidelity.losses(from: list, to: KeyedWriter.list(again), as: .values)
    case (.keyed(let list, let graph), _):
      try self.init(plain: graph, target, isLossy: wanted == .lossy, room, progress)
      progress("comparing \(Printable.size(Int64(bytes.count)))")
      let again = target == .json ? try JSONFile.read(bytes) : try PropertyList(bytes)
      losses += try KeyedFidelity.losses(from: list, to: KeyedWriter.list(ObjectGraph(again)), as: .values)
    case (.values(let graph), .binary) where file.spelling == .binary:
      try self.init(plain: graph, target, isLossy: wanted == .lossy, keepsKinds: true, room, progress)
    default: try self.init(plain: file.graph(), target, isLossy: wanted == .lossy, room, progress)
    }
    guard case .keyed(let list, _) = file.content else { return }
    if let asked = file.asked {
      let literal = try KeyedWriter.list(asked, isLiteral: true)
      losses = try KeyedFidelity.losses(from: literal, to: list, as: .objects) + losses
    }
    if target == .archive, wanted != .lossy, !losses.isEmpty { throw Self.lost(losses) }
  }

  private init(_ bytes: Data, _ form: Form) { (self.bytes, self.form) = (bytes, form) }

  /// A keyed archive as a property list, object by object.
  private init(sameObjects list: PropertyList, _ target: FileFormat, _ progress: (String) -> Void) throws {
    self.init(try Self.encode(list, as: target), .exact)
    progress("checking \(Printable.size(Int64(bytes.count)))")
    let again = try PropertyList(bytes, limits: .inProportion(to: bytes))
    guard again == (target == .xml ? Self.asXML(list) : list) else { throw Self.notSame(target) }
    losses = try KeyedFidelity.losses(from: list, to: again, as: .objects)
  }

  /// Values without objects as a keyed archive.
  private init(keyed given: ObjectGraph, isLossy: Bool, _ progress: (String) -> Void) throws {
    let (graph, uids) = NumberedUIDs.replaced(in: given)
    if let uids, !isLossy {
      throw CommandFailure(
        .data, "\(uids.path): keyed archive has no UIDs beside those of its own objects",
        next: "--lossy writes \(uids.what)")
    }
    self.init(try KeyedWriter.list(graph).encoded(as: .binary), isLossy ? .lossy : .exact)
    losses = uids.map { [$0] } ?? []
    try check(.keyed, progress) { file in
      guard case .keyed(_, let again) = file.content else { return false }
      return KeyedValues.areSame(graph, again)
    }
  }

  private init(tagged archive: Data, _ target: FileFormat, _ progress: (String) -> Void) throws {
    self.init(try Self.encode(ArchiveDocument.list(ArchiveScript(of: archive), for: target), as: target), .tagged)
    try check(target, progress) { if case .archive(let again) = $0.content { again == archive } else { false } }
  }

  private init(
    plain graph: ObjectGraph, _ target: FileFormat, isLossy: Bool, keepsKinds: Bool = false, _ room: SpellingRoom,
    _ progress: (String) -> Void
  ) throws {
    var plain = PlainForm(graph, for: target, isLossy: isLossy, keepsKinds: keepsKinds, room)
    let value = try plain.tree()
    if target == .archive {
      var script = ArchiveScript()
      script.rootType = .scalar("coded")
      script.root = value
      self.init(try script.encoded(), isLossy ? .lossy : .exact)
      progress("checking \(Printable.size(Int64(bytes.count)))")
      // An archive stores the keys of its dictionaries in an order of its own.
      let (old, again) = (ObjectGraph(value), ObjectGraph(try ArchiveInspection(of: bytes)))
      let difference = ArchiveDifference(
        from: old.inspection(of: "", byteCount: 0), to: again.inspection(of: "", byteCount: 0))
      guard difference.isEmpty else { throw Self.notSame(target) }
    } else {
      let list = try PlainForm.list(value, graph, for: target)
      self.init(try Self.encode(list, as: target), isLossy ? .lossy : .exact)
      // Compared as plain values: what a reader would take for a tagged or keyed file isn't one here.
      progress("checking \(Printable.size(Int64(bytes.count)))")
      let again = target == .json ? try JSONFile.read(bytes) : try PropertyList(bytes)
      guard again == list else { throw Self.notSame(target) }
    }
    losses = plain.losses
  }

  /// Returns the list with 32-bit numbers as 64-bit ones, which they are in XML.
  private static func asXML(_ list: PropertyList) -> PropertyList {
    switch list {
    case .float(let value): .number(Double(value))
    case .array(let elements): .array(elements.map(asXML))
    case .dictionary(let entries): .dictionary(entries.map { .init($0.key, asXML($0.value)) })
    default: list
    }
  }

  private static func encode(_ list: PropertyList, as target: FileFormat) throws -> Data {
    switch target {
    case .json: try JSONFile.write(list)
    case .xml: try list.encoded(as: .xml)
    case .binary, .keyed, .archive: try list.encoded(as: .binary)
    }
  }

  private func check(_ target: FileFormat, _ progress: (String) -> Void, _ isSame: (SavedFile) throws -> Bool) throws {
    progress("checking \(Printable.size(Int64(bytes.count)))")
    guard try isSame(SavedFile(bytes, named: target.words)) else { throw Self.notSame(target) }
  }

  /// The failure of a conversion that nobody has allowed to lose something.
  private static func lost(_ losses: [PlainForm.Loss]) -> CommandFailure {
    let listed = losses.prefix(lossesListed).map { "\($0.count) \($0.what) (first at \($0.path))" }
    let more = losses.count > lossesListed ? "; and \(losses.count - lossesListed) more kinds" : ""
    return CommandFailure(
      .data, "an archive doesn't keep what this file has: \(listed.joined(separator: "; "))\(more)",
      next: "convert it to JSON or a property list, which keeps everything, or use --lossy")
  }

  /// How many kinds of losses a failure lists.
  private static let lossesListed = 12

  private static func notSame(_ target: FileFormat) -> CommandFailure {
    CommandFailure(
      .data,
      """
      the file contains something that would change if it were read back from \(target.words): fractions of a second, \
      a key that occurs twice in a dictionary, or a dictionary that would be read as another value
      """,
      next: target == .binary
        ? "change it in the original" : "convert it to a binary property list (.bplist), which keeps more")
  }
}
#endif
