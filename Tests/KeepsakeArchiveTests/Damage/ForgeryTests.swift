import Foundation
import KeepsakeInspection
import TestSupport
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive

/// A hand-written type whose values contain values of the same type.
private struct Twigs: Archivable {
  var twigs: [Twigs]
  func encode(to writer: inout ArchiveWriter) throws {
    for (index, twig) in twigs.prefix(2).enumerated() { try writer.encode(twig, forKey: index == 0 ? "a" : "b") }
  }
  init(from reader: inout ArchiveReader) throws {
    twigs = []
    for key in ["a", "b"] {
      if let twig = try reader.decodeIfPresent(Twigs.self, forKey: key) { twigs.append(twig) }
    }
  }
}

/// Two branches at each level, so that an archive can describe any number of types that correspond to this one.
@Archivable private indirect enum Twin {
  case end
  case two(Twin, Twin)
}

@Archivable private final class Folder {
  var one: Folder?
  var two: Folder?
}

@Archivable private struct Shelf { var folders: [Folder] = [] }

@Archivable private struct Family {
  var parent: Parent?
  var child: Child
}

@Archivable(name: "Family") private struct Orphanage { var child: Child }

/// Archives that no program wrote, with a valid checksum.
@Suite struct ForgeryTests {
  @Test func valuesThatReachIntoEachOtherAreDamageAndTakeNoTime() throws {
    let pairs = (0..<8).flatMap { _ in Forged.keyed(0, 0, length: 0) + Forged.keyed(1, 0, length: 0) }
    let bytes = Forged(
      types: [Forged.type(.keyedValue, "Twigs")], rootType: Forged.named(0), keys: ["a", "b"], wires: [Forged.named(0)],
      root: pairs + Forged.varint(0)
    ).data
    let error = #expect(throws: ArchiveError.self) { try Archive.decode(Twigs.self, from: bytes) }
    #expect(error?.code == .damaged)
  }

  @Test func aValueUnderAKeyEndsWhereItsLengthSays() throws {
    func bytes(_ length: UInt32, _ number: [UInt8]) -> Data {
      Forged(
        types: [Forged.type(.keyedValue, "HandKeyed")], rootType: Forged.named(0), keys: ["text", "number"],
        wires: [[WireCode.string.rawValue], [WireCode.int64.rawValue]],
        root: Forged.keyed(0, 0, length: 2, Forged.string("a")) + Forged.keyed(1, 1, length: length, number)
          + Forged.varint(0)
      ).data
    }
    let whole = bytes(1, Forged.varint(8))
    #expect(try Archive.decode(HandKeyed.self, from: whole).number == 4)
    #expect(try Archive.decode(Old.Keyed.self, from: whole).number == 4)
    // Too short: the number would be read as the end of the list. Too long: one byte belongs to nothing.
    for wrong in [bytes(0, []), bytes(2, Forged.varint(8) + [0])] {
      let byKey = #expect(throws: ArchiveError.self) { try Archive.decode(HandKeyed.self, from: wrong) }
      #expect(byKey?.code == .damaged)
      let generated = #expect(throws: ArchiveError.self) { try Archive.decode(Old.Keyed.self, from: wrong) }
      #expect(generated?.code == .damaged)
    }
  }

  @Test func onlyFieldsOfClassesMayStandInTheReferencesSection() throws {
    func fields(_ flags: UInt8) -> [UInt8] {
      Forged.fields([Forged.field("number", [WireCode.int64.rawValue], flags: flags)])
    }
    func structure(_ flags: UInt8) -> Data {
      Forged(types: [Forged.type(.structure, "S") + fields(flags)], rootType: Forged.named(0), root: Forged.varint(2))
        .data
    }
    func payload(_ flags: UInt8) -> Data {
      Forged(
        types: [Forged.type(.enumeration, "E") + Forged.varint(1) + Forged.string("one") + fields(flags)],
        rootType: Forged.named(0),
        root: Forged.varint(0) + Forged.varint(2)
      ).data
    }
    func object(_ flags: UInt8) -> Data {
      Forged(
        types: [Forged.type(.object, "C") + fields(flags)], rootType: [WireCode.int64.rawValue], root: Forged.varint(2)
      ).data
    }
    for good in [structure(0), payload(0), object(0), object(1)] { _ = try ArchiveInspection(of: good) }
    for bad in [structure(1), payload(1), object(2)] {
      let error = #expect(throws: ArchiveError.self) { try ArchiveInspection(of: bad) }
      #expect(error?.code == .damaged && error?.message.contains("flags") == true)
    }
  }

  @Test func aLongChainOfTypesFitsOnASmallStack() throws {
    let count = ArchiveLimits.standard.types
    // Each type is like `Deep`, but its payload is the next type; the payload of the last one is that type itself.
    let types = (0..<count).map { (index: Int) -> [UInt8] in
      let more = Forged.fields([Forged.field("0", Forged.named(min(index + 1, count - 1)))])
      return Forged.type(.enumeration, "Deep") + Forged.varint(2) + Forged.string("end") + Forged.fields()
        + Forged.string("more") + more
    }
    func bytes(levels: Int) -> Data {
      Forged(
        types: types, rootType: Forged.named(0), root: Forged.repeated(Forged.varint(1)[0], levels) + Forged.varint(0)
      ).data
    }
    let samples = [bytes(levels: 0), bytes(levels: 3)]
    let results = onSmallStack {
      samples.map { sample in
        do {
          _ = try Archive.decode(Deep.self, from: sample)
          return "read"
        } catch {
          return "\(error)"
        }
      }
    }
    #expect(results == ["read", "read"])
    let error = #expect(throws: ArchiveError.self) { try Archive.decode(Deep.self, from: bytes(levels: 300)) }
    #expect(error?.code == .limit)
  }

  /// Ten thousand cases with the same name, each leading to a description of two thousand types that differs from the
  /// program's types only at its end. Comparing all of them for each case would take forty million comparisons.
  @Test(.hangLimit) func comparingTypesTakesNoLongerThanTheArchiveIsLong() throws {
    let count = 2000
    func type(_ first: Int, _ second: Int, doubled: Int = 1, end: String = "end") -> [UInt8] {
      let two =
        Forged.string("two")
        + Forged.fields([Forged.field("0", Forged.named(first)), Forged.field("1", Forged.named(second))])
      let cases = Forged.string(end) + Forged.fields() + [[UInt8]](repeating: two, count: doubled).joined()
      return Forged.type(.enumeration, "Twin") + Forged.varint(1 + doubled) + cases
    }
    var types = (0..<count).map { type(min(2 * $0 + 1, count - 1), min(2 * $0 + 2, count - 1)) }
    types[0] = type(1, 2, doubled: 10_000)
    types[count - 1] = type(0, 1, end: "other")
    let bytes = Forged(types: types, rootType: Forged.named(0), root: Forged.varint(0)).data
    guard case .end = try Archive.decode(Twin.self, from: bytes) else {
      Issue.record("another value was decoded")
      return
    }
    let compared = ComparedTypes()
    try bytes.withUnsafeBytes { bytes in
      let envelope = try ArchiveEnvelope(bytes, limits: .standard)
      let program = try CompiledSchema.of(Twin.self).schema
      let own = try #require(program.typeIndex(of: ObjectIdentifier(Twin.self)))
      _ = try FieldPlan(
        file: ArchiveFile(envelope, limits: .standard).schema, index: 0, program: program, own: Int(own),
        compared: compared)
    }
    // The limit, plus one or two comparisons for each case that is then refused at once.
    #expect(
      compared.spent >= count && compared.spent < ArchiveLimits.comparisons + 30_000, "\(compared.spent) comparisons")
  }

  /// Fields in the references section take no bytes in the values section. Without the check, a million objects would
  /// be built before the first missing field is noticed.
  @Test func objectsWhoseFieldsAreNotThereAreDamageBeforeAnyIsBuilt() throws {
    func bytes(objects: Int, references: Int) -> Data {
      let fields = ["one", "two"].map { Forged.field($0, Forged.list(.optional, Forged.named(1)), flags: 1) }
      let shelf = Forged.fields([Forged.field("folders", Forged.list(.array, Forged.named(1)))])
      return Forged(
        types: [Forged.type(.structure, "Shelf") + shelf, Forged.type(.object, "Folder") + Forged.fields(fields)],
        rootType: Forged.named(0), root: Forged.varint(0), references: Forged.repeated(1, references), objects: objects,
        runs: [Forged.run(type: 1, count: objects, first: 0)]
      ).data
    }
    #expect(try Archive.decode(Shelf.self, from: bytes(objects: 100, references: 200)).folders.isEmpty)
    #expect(try ArchiveInspection(of: bytes(objects: 100, references: 200)).objects.count == 100)
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(Shelf.self, from: bytes(objects: 100, references: 199))
    }
    #expect(error?.code == .damaged && error?.message.contains("more objects than there are bytes") == true)
    let tree = #expect(throws: ArchiveError.self) { try ArchiveInspection(of: bytes(objects: 100, references: 199)) }
    #expect(tree?.code == .damaged)
  }

  /// Using the child's unowned parent would crash the game.
  @Test func anUnownedReferenceToSomethingThatNothingOwnsIsAnError() throws {
    let parent = Parent()
    parent.children = [Child(parent: parent, name: "a")]
    let bytes = try Archive.encode(Family(parent: parent, child: parent.children[0]))
    let family = try Archive.decode(Family.self, from: bytes)
    #expect(family.child.parent === family.parent)
    let error = #expect(throws: ArchiveError.self) { try Archive.decode(Orphanage.self, from: bytes) }
    #expect(error?.code == .unbuildable && error?.message.contains("owns") == true)
    for parent in [parent, family.parent] { parent?.children = [] }
  }
}
