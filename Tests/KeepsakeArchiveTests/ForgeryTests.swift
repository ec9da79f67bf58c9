import Foundation
import Testing

@testable import KeepsakeArchive

/// A hand-written type whose values hold values of itself.
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

/// Archives that no program wrote, with a right checksum.
@Suite struct ForgeryTests {
  func varint(_ value: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    Varint.append(UInt64(value), to: &bytes)
    return bytes
  }

  func join(_ parts: [UInt8]...) -> [UInt8] { Array(parts.joined()) }

  func string(_ text: String) -> [UInt8] { join(varint(text.utf8.count), Array(text.utf8)) }

  /// A type without what its kind adds.
  func type(_ kind: TypeKind, _ name: String) -> [UInt8] { join([kind.rawValue], string(name), varint(1)) }

  func named(_ index: Int) -> [UInt8] { join([WireCode.named.rawValue], varint(index)) }

  func archive(types: [[UInt8]], root: [UInt8], keys: [String] = [], wires: [[UInt8]] = [], value: [UInt8]) -> Data {
    var bytes: [UInt8] = ArchiveLayout.magic
    bytes += [1, 0, 0, 0, 0, 0, 0, 0]
    bytes += value
    let footer = UInt64(bytes.count)
    let schema = Array(types.joined())
    bytes += varint(types.count)
    bytes += varint(schema.count)
    bytes += schema
    bytes += varint(0)
    bytes += root
    bytes += varint(keys.count)
    for key in keys { bytes += string(key) }
    bytes += varint(wires.count)
    for wire in wires { bytes += wire }
    // The three sections' lengths, objects and runs.
    bytes += varint(value.count)
    for _ in 0..<4 { bytes += varint(0) }
    withUnsafeBytes(of: footer.littleEndian) { bytes.append(contentsOf: $0) }
    return Archive.resealed(Data(bytes + [UInt8](repeating: 0, count: 8)))
  }

  /// A field of a hand-written value.
  private func keyed(_ key: Int, _ wire: Int, length: UInt8, _ value: [UInt8] = []) -> [UInt8] {
    join(varint(key + 1), varint(wire), [length, 0, 0, 0], value)
  }

  @Test func valuesThatReachIntoEachOtherAreDamageAndTakeNoTime() throws {
    let pairs = (0..<8).flatMap { _ in join(keyed(0, 0, length: 0), keyed(1, 0, length: 0)) }
    let bytes = archive(
      types: [type(.keyedValue, "Twigs")], root: named(0), keys: ["a", "b"], wires: [named(0)], value: join(pairs, varint(0)))
    let error = #expect(throws: ArchiveError.self) { try Archive.decode(Twigs.self, from: bytes) }
    #expect(error?.code == .damaged)
  }

  @Test func aValueUnderAKeyEndsWhereItsLengthSays() throws {
    func bytes(_ length: UInt8, _ number: [UInt8]) -> Data {
      archive(
        types: [type(.keyedValue, "HandKeyed")], root: named(0), keys: ["text", "number"],
        wires: [[WireCode.string.rawValue], [WireCode.int64.rawValue]],
        value: join(keyed(0, 0, length: 2, string("a")), keyed(1, 1, length: length, number), varint(0)))
    }
    let whole = bytes(1, varint(8))
    #expect(try Archive.decode(HandKeyed.self, from: whole).number == 4)
    #expect(try Archive.decode(Old.Keyed.self, from: whole).number == 4)
    // Too short: the number would be the end of the list. Too long: a byte that belongs to nothing.
    for wrong in [bytes(0, []), bytes(2, join(varint(8), [0]))] {
      let byKey = #expect(throws: ArchiveError.self) { try Archive.decode(HandKeyed.self, from: wrong) }
      #expect(byKey?.code == .damaged)
      let generated = #expect(throws: ArchiveError.self) { try Archive.decode(Old.Keyed.self, from: wrong) }
      #expect(generated?.code == .damaged)
    }
  }

  @Test func onlyFieldsOfClassesMayStandInTheReferencesSection() throws {
    func fields(_ flags: UInt8) -> [UInt8] { join(varint(1), string("number"), [flags, WireCode.int64.rawValue]) }
    func structure(_ flags: UInt8) -> Data {
      archive(types: [join(type(.structure, "S"), fields(flags))], root: named(0), value: varint(2))
    }
    func payload(_ flags: UInt8) -> Data {
      archive(
        types: [join(type(.enumeration, "E"), varint(1), string("one"), fields(flags))], root: named(0),
        value: join(varint(0), varint(2)))
    }
    func object(_ flags: UInt8) -> Data {
      archive(types: [join(type(.object, "C"), varint(0), fields(flags))], root: [WireCode.int64.rawValue], value: varint(2))
    }
    for good in [structure(0), payload(0), object(0), object(1)] { _ = try ArchiveInspection(of: good) }
    for bad in [structure(1), payload(1), object(2)] {
      let error = #expect(throws: ArchiveError.self) { try ArchiveInspection(of: bad) }
      #expect(error?.code == .damaged && error?.message.contains("flags") == true)
    }
  }

  @Test func aLongChainOfTypesFitsOnASmallStack() throws {
    let count = ArchiveLimits.standard.types
    // Each type is `Deep`, but for the next type in its payload; the last leads to itself.
    let types = (0..<count).map { (index: Int) -> [UInt8] in
      let end = join(string("end"), varint(0))
      let more = join(string("more"), varint(1), string("0"), [0], named(min(index + 1, count - 1)))
      return join(type(.enumeration, "Deep"), varint(2), end, more)
    }
    func bytes(levels: Int) -> Data {
      archive(types: types, root: named(0), value: join([UInt8](repeating: varint(1)[0], count: levels), varint(0)))
    }
    let samples = [bytes(levels: 0), bytes(levels: 3)]
    nonisolated(unsafe) var results: [String] = []
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
      for sample in samples {
        do {
          _ = try Archive.decode(Deep.self, from: sample)
          results.append("read")
        } catch {
          results.append("\(error)")
        }
      }
      done.signal()
    }
    thread.stackSize = 512 << 10
    thread.start()
    done.wait()
    #expect(results == ["read", "read"])
    let error = #expect(throws: ArchiveError.self) { try Archive.decode(Deep.self, from: bytes(levels: 300)) }
    #expect(error?.code == .limit)
  }
}
