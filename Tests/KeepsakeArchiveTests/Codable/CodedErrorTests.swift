import Foundation
import KeepsakeInspection
import TestSupport
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive

/// Writes bytes that no encoder produced in place of a coded value.
private struct ForgedCoded: Archivable {
  var bytes: [UInt8]
  init(_ bytes: [UInt8]) { self.bytes = bytes }
  static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.coded) }
  static var archiveIsKeyed: Bool { false }
  func encode(to writer: inout ArchiveWriter) throws { try writer.putCoded(bytes) }
  init(from reader: inout ArchiveReader) throws { bytes = try reader.takeCoded().bytes }
}

/// Decodes any tree, and visits all of it.
private enum Anything: Codable, Equatable {
  case null
  case text(String)
  case bytes(Data)
  case number(Double)
  case yes(Bool)
  case list([Anything])
  case object([String: Anything])

  init(from decoder: any Decoder) throws {
    let single = try decoder.singleValueContainer()
    if single.decodeNil() {
      self = .null
    } else if let text = try? single.decode(String.self) {
      self = .text(text)
    } else if let number = try? single.decode(Double.self) {
      self = .number(number)
    } else if let bytes = try? single.decode(Data.self) {
      self = .bytes(bytes)
    } else if let number = try? single.decode(UInt64.self) {
      self = .number(Double(number))
    } else if let yes = try? single.decode(Bool.self) {
      self = .yes(yes)
    } else if var list = try? decoder.unkeyedContainer() {
      var all: [Anything] = []
      while !list.isAtEnd { all.append(try list.decode(Anything.self)) }
      self = .list(all)
    } else {
      self = .object(try [String: Anything](from: decoder))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var single = encoder.singleValueContainer()
    switch self {
    case .null: try single.encodeNil()
    case .text(let text): try single.encode(text)
    case .bytes(let bytes): try single.encode(bytes)
    case .number(let number): try single.encode(number)
    case .yes(let yes): try single.encode(yes)
    case .list(let list): try single.encode(list)
    case .object(let object): try single.encode(object)
    }
  }
}

/// Needs two nested decoding calls for each level of the tree.
private struct Wrapped: Codable {
  var inside: [Wrapped]
  init(from decoder: any Decoder) throws { inside = try decoder.singleValueContainer().decode([Wrapped].self) }
  func encode(to encoder: any Encoder) throws {
    var single = encoder.singleValueContainer()
    try single.encode(inside)
  }
}

/// Its initialiser calls itself, whatever was saved.
private struct Spiral: Decodable {
  init(from decoder: any Decoder) throws { self = try decoder.singleValueContainer().decode(Spiral.self) }
}

private final class Ring: Codable {
  var next: Ring?
  var others: [Ring] = []
}

/// Nests containers without ever calling a method that throws.
private struct Burrow: Codable {
  var levels: Int
  init(levels: Int) { self.levels = levels }
  init(from decoder: any Decoder) throws { levels = 0 }
  func encode(to encoder: any Encoder) throws {
    var list = encoder.unkeyedContainer()
    for _ in 0..<levels { list = list.nestedUnkeyedContainer() }
  }
}

private struct Doubtful: Codable {
  enum Way: Codable { case twoContainers, twoValues, valueThenContainer, nestedTwice, fails, foreign }
  var way: Way
  init(_ way: Way) { self.way = way }
  init(from decoder: any Decoder) throws { way = .fails }

  struct Foreign: Error {}

  func encode(to encoder: any Encoder) throws {
    switch way {
    case .twoContainers:
      var object = encoder.container(keyedBy: CodedIndex.self)
      try object.encode(1, forKey: CodedIndex(0))
      var list = encoder.unkeyedContainer()
      try list.encode(2)
    case .twoValues:
      var single = encoder.singleValueContainer()
      try single.encode(1)
      try single.encode(2)
    case .valueThenContainer:
      var single = encoder.singleValueContainer()
      try single.encode(1)
      _ = encoder.unkeyedContainer()
    case .nestedTwice:
      var object = encoder.container(keyedBy: CodedIndex.self)
      _ = object.nestedContainer(keyedBy: CodedIndex.self, forKey: CodedIndex(0))
      _ = object.nestedUnkeyedContainer(forKey: CodedIndex(0))
    case .fails:
      throw EncodingError.invalidValue(way, .init(codingPath: encoder.codingPath, debugDescription: "not today"))
    case .foreign: throw Foreign()
    }
  }
}

private enum Then {
  struct Part: Codable { var x = 1 }
  struct Save: Codable {
    var name = "Ann"
    var parts = [Part(), Part()]
    var mood = "calm"
    var gone = [1: "x"]
  }
}
private enum Now {
  struct Part: Codable { var x: Int, y: Int }
  struct Save: Codable { var parts: [Part] }
  struct More: Codable {
    var name: String
    var added: [String]?
    var parts: [Then.Part]
  }
  enum Mood: String, Codable { case wild }
  struct Moody: Codable { var mood: Mood }
}

@Archivable(name: "Home") private struct CodedHome {
  @Coded var sky = ThirdParty.Celsius(1)
  @Coded var maybe: ThirdParty.Celsius? = ThirdParty.Celsius(2)
  var list: [Coded<ThirdParty.Celsius>] = [Coded(ThirdParty.Celsius(3))]
}
@Archivable(name: "Home") private struct DefaultHome {
  @Coded var maybe = ThirdParty.Celsius(9)
  @Coded var added = ThirdParty.Celsius(8)
  @Coded var missing: ThirdParty.Celsius?
}
@Archivable(name: "Home") private struct OwnHome { var sky: Double = 0 }
@Archivable(name: "Home") private struct OwnMaybe { var maybe: Double? }
@Archivable(name: "Home") private struct OwnList { var list: [Double] = [] }
@Archivable(name: "Home") private struct StructHome { var sky = Item(kind: 1) }

@Suite struct CodedErrorTests {
  private func error(_ body: () throws -> Void) -> ArchiveError? {
    do { try body() } catch { return error as? ArchiveError }
    return nil
  }

  // MARK: Mismatches

  @Test func whatIsMissingOrDoesNotFitIsNamedWithItsPath() throws {
    let bytes = try Archive.encode(Then.Save())
    let missing = error { _ = try Archive.decode(Now.Save.self, from: bytes) }
    #expect(missing?.code == .missingField && missing?.field == "parts[0].y" && missing?.type == "Save")
    let unknown = error { _ = try Archive.decode(Now.Moody.self, from: bytes) }
    #expect(unknown?.code == .mismatch && unknown?.field == "mood" && unknown?.message.contains("calm") == true)
    let wrong = error { _ = try Archive.decode([String: Int].self, from: Archive.encode(Coded(["a": "b"]))) }
    #expect(wrong?.code == .mismatch)
    let top = error { _ = try Archive.decode(Then.Save.self, from: Archive.encode(ThirdParty.Celsius(1))) }
    #expect(top?.code == .mismatch && top?.field == nil)
  }

  @Test func oldSavesAreReadByATypeThatGainedAnOptional() throws {
    let more = try Archive.decode(Now.More.self, from: Archive.encode(Then.Save()))
    #expect(more.name == "Ann" && more.added == nil && more.parts.count == 2)
  }

  @Test func nilAndAbsenceLeaveTheDefault() throws {
    let home = try Archive.decode(DefaultHome.self, from: Archive.encode(CodedHome(maybe: nil)))
    #expect(home.maybe.degrees == 9 && home.added.degrees == 8 && home.missing == nil)
    #expect(try Archive.decode(DefaultHome.self, from: Archive.encode(CodedHome())).maybe.degrees == 2)
  }

  @Test func aPropertyThatBecomesCodedOrCeasesToBeIsAMismatch() throws {
    let coded = try Archive.encode(CodedHome())
    for attempt in [
      { _ = try Archive.decode(OwnHome.self, from: coded) }, { _ = try Archive.decode(OwnMaybe.self, from: coded) },
      { _ = try Archive.decode(OwnList.self, from: coded) }, { _ = try Archive.decode(StructHome.self, from: coded) },
      { _ = try Archive.decode(CodedHome.self, from: Archive.encode(OwnHome())) },
      { _ = try Archive.decode(CodedHome.self, from: Archive.encode(StructHome())) },
      { _ = try Archive.decode(PublicSave.self, from: Archive.encode(Coded(PublicSave(id: 1, b: "")))) },
      { _ = try Archive.decode(Then.Save.self, from: Archive.encode(Item(kind: 1))) },
    ] as [() throws -> Void] {
      #expect(error(attempt)?.code == .mismatch)
    }
  }

  @Test func aDecoderFindsTheGamesData() throws {
    struct Asking: Codable {
      var heard = ""
      init() {}
      init(from decoder: any Decoder) throws { heard = decoder.userInfo[.archiveContext] as? String ?? "nothing" }
      func encode(to encoder: any Encoder) throws { try encoder.singleValueContainer().encodeOnce("x") }
    }
    let bytes = try Archive.encode(Asking())
    #expect(try Archive.decode(Asking.self, from: bytes, context: "levels").heard == "levels")
    #expect(try Archive.decode(Asking.self, from: bytes).heard == "nothing")
    #expect(
      try Archive.decode([Coded<Asking>].self, from: Archive.encode([Coded(Asking())]), context: "levels")[0].value
        .heard == "levels")
  }

  // MARK: What can't be encoded

  @Test func encodingNothingOrTwiceIsAnErrorAndNoTrap() throws {
    let nothing = error { _ = try Archive.encode(ThirdParty.Silent()) }
    #expect(nothing?.code == .unsupported && nothing?.message.contains("nothing") == true)
    for way in [Doubtful.Way.twoContainers, .twoValues, .valueThenContainer, .nestedTwice] {
      let inside = error { _ = try Archive.encode(Coded(["here": [Doubtful(way)]])) }
      #expect(
        inside?.code == .unsupported && inside?.message.contains("here[0]") == true, "\(way): \(inside?.message ?? "")")
    }
    let fails = error { _ = try Archive.encode(Coded([Doubtful(.fails)])) }
    #expect(fails?.code == .unsupported && fails?.message.contains("not today") == true && fails?.field == "[0]")
    #expect(throws: Doubtful.Foreign.self) { try Archive.encode(Coded([Doubtful(.foreign)])) }
  }

  @Test func aCycleIsAnErrorAndNoOverflow() {
    let result = onSmallStack {
      let ring = Ring()
      ring.next = Ring()
      ring.next?.others = [ring]
      defer { ring.next = nil }
      do {
        _ = try Archive.encode([Coded(ring)])
        return "encoded"
      } catch {
        return (error as? ArchiveError)?.code.rawValue ?? "\(error)"
      }
    }
    #expect(result == "limit")
  }

  @Test func endlessContainersAreAnErrorAndNoOverflow() {
    let result = onSmallStack {
      do {
        _ = try Archive.encode(Coded(Burrow(levels: 100_000)))
        return "encoded"
      } catch {
        return (error as? ArchiveError)?.code.rawValue ?? "\(error)"
      }
    }
    #expect(result == "limit")
  }

  @Test func theDeepestAllowedNestingFitsOnASmallStack() {
    let result = onSmallStack {
      var chain = Ring()
      let depth = ArchiveLimits.standard.depth
      for _ in 0..<depth {
        let outer = Ring()
        outer.next = chain
        chain = outer
      }
      do {
        _ = try Archive.encode(Coded(chain))
        return "too deep was encoded"
      } catch {
        guard (error as? ArchiveError)?.code == .limit else { return "\(error)" }
      }
      guard let fits = chain.next else { return "no chain" }
      do {
        var copy: Ring? = try Archive.decode(Coded<Ring>.self, from: Archive.encode(Coded(fits))).value
        var count = 0
        while let here = copy {
          count += 1
          copy = here.next
        }
        return "\(count == depth)"
      } catch {
        return "\(error)"
      }
    }
    #expect(result == "true")
  }

  @Test func sharedObjectsCannotMakeATreeWithoutEnd() {
    var top = Ring()
    for _ in 0..<40 {
      let next = Ring()
      next.others = [top, top]
      top = next
    }
    var limits = ArchiveLimits()
    limits.codedValues = 10_000
    #expect(error { _ = try Archive.encode(Coded(top), limits: limits) }?.code == .limit)
    #expect(
      error { _ = try Archive.decode([Int8: Bool].self, from: Archive.encode(Coded([1: true])), limits: limits) }?.code
        == .mismatch)
    limits.codedValues = 3
    #expect(
      error { _ = try Archive.decode(Coded<[Int]>.self, from: Archive.encode(Coded([1, 2, 3])), limits: limits) }?.code
        == .limit)
    limits.stringBytes = 3
    #expect(error { _ = try Archive.encode(Coded("four"), limits: limits) }?.code == .limit)
    #expect(
      error { _ = try Archive.decode(Coded<String>.self, from: Archive.encode(Coded("four")), limits: limits) }?.code
        == .limit)
  }

  // MARK: Hostile bytes

  private func tree(_ keys: [String], _ value: [UInt8]) throws -> Data {
    var bytes: [UInt8] = []
    Varint.append(UInt64(keys.count), to: &bytes)
    for key in keys { Varint.append(key, to: &bytes) }
    return try Archive.encode(ForgedCoded(bytes + value))
  }

  private func small(_ number: UInt8) -> UInt8 { number << 1 | 1 }

  @Test func theBytesAreThoseOfTheFormatsDescription() throws {
    let tree: [UInt8] = [0x05, 0x03, 0x61, 0x03, 0x62, 0x10, 0x05, 0x01, 0x00, 0x03, 0x03, 0x05]
    let bytes = try Archive.encode(Coded(["b": 1, "a": Int?.none]))
    #expect(Array(bytes[16..<29]) == [0x19] + tree)
    #expect(try Archive.decode(ForgedCoded.self, from: bytes).bytes == tree)
  }

  @Test func treesThatNoEncoderWroteAreDamage() throws {
    let (null, list, object) = (CodedTag.null.rawValue, CodedTag.array.rawValue, CodedTag.object.rawValue)
    #expect(
      try Archive.decode(Coded<Anything>.self, from: tree(["a"], [object, small(1), small(0), null])).value
        == .object(["a": .null]))
    let bad: [(String, Data)] = [
      ("nothing", try Archive.encode(ForgedCoded([]))),
      ("no value", try tree([], [])),
      ("unknown tag", try tree([], [17])),
      ("unknown tag inside", try tree([], [list, small(1), 255])),
      ("more after the value", try tree([], [null, null])),
      ("too few elements", try tree([], [list, small(2), null])),
      ("a count beyond the bytes", try tree([], [list, 0, 255, 255, 255, 255, 255, 255, 255, 255])),
      ("keys that descend", try tree(["b", "a"], [null])),
      ("a key twice in the table", try tree(["a", "a"], [null])),
      ("a key twice in an object", try tree(["a"], [object, small(2), small(0), null, small(0), null])),
      ("fields that descend", try tree(["a", "b"], [object, small(2), small(1), null, small(0), null])),
      ("a key that isn't there", try tree(["a"], [object, small(1), small(1), null])),
      ("text that isn't UTF-8", try tree([], [CodedTag.string.rawValue, small(1), 255])),
      ("half a number", try tree([], [CodedTag.double.rawValue, 0, 0])),
      ("no decimal", try tree([], [CodedTag.decimal.rawValue, small(1), 0])),
    ]
    for (what, bytes) in bad {
      #expect(error { _ = try Archive.decode(Coded<Anything>.self, from: bytes) }?.code == .damaged, "\(what)")
      #expect(error { _ = try ArchiveInspection(of: bytes) }?.code == .damaged, "\(what)")
    }
  }

  @Test func aDeepTreeIsAnErrorAndNoOverflow() throws {
    let nested = [UInt8](repeating: CodedTag.array.rawValue, count: 1).flatMap { [$0, small(1)] }
    let deep = try tree([], (0..<100_000).flatMap { _ in nested } + [0])
    let deepest = try tree([], (0..<127).flatMap { _ in nested } + [CodedTag.array.rawValue, small(0)])
    let attempts: [@Sendable () throws -> Void] = [
      { _ = try Archive.decode(Coded<Anything>.self, from: deep) }, { _ = try ArchiveInspection(of: deep) },
      { _ = try Archive.decode(Coded<Anything>.self, from: deepest) }, { _ = try ArchiveInspection(of: deepest) },
      { _ = try Archive.decode(Coded<Wrapped>.self, from: deepest) },
      { _ = try Archive.decode(Spiral.self, from: deepest) },
    ]
    let result = onSmallStack {
      attempts.map { attempt in
        do {
          try attempt()
          return "read"
        } catch {
          return (error as? ArchiveError)?.code.rawValue ?? "\(error)"
        }
      }.joined(separator: " ")
    }
    #expect(result == "limit limit read read read limit")
  }

  @Test func altersThatPassTheChecksumNeverCrash() throws {
    let samples: [(Data, (Data) throws -> Void)] = [
      (try Archive.encode(CodedTests.outside()), { _ = try Archive.decode(Outside.self, from: $0) }),
      (try Archive.encode(ThirdParty.Weather()), { _ = try Archive.decode(ThirdParty.Weather.self, from: $0) }),
      (try Archive.encode(ThirdParty.Weather()), { _ = try Archive.decode(Anything.self, from: $0) }),
    ]
    for (sample, (good, read)) in samples.enumerated() {
      try read(good)
      var random = Seeded(UInt64(sample) + 20)
      var survivors = 0
      for index in 16..<good.count - 8 {
        var bad = good
        bad[index] = .random(in: 0...255, using: &random)
        if Bool.random(using: &random) {
          bad[.random(in: 16..<good.count - 8, using: &random)] ^= .random(in: 1...255, using: &random)
        }
        let sealed = Archive.resealed(bad)
        do {
          try read(sealed)
          survivors += 1
        } catch {
          #expect(error is ArchiveError, "seed \(sample + 20), byte \(index): \(error)")
        }
        do { _ = try ArchiveInspection(of: sealed).text() } catch {
          #expect(error is ArchiveError, "seed \(sample + 20), byte \(index): \(error)")
        }
      }
      #expect(survivors > 0)
    }
  }
}

extension SingleValueEncodingContainer {
  /// For one-liners: the container is a temporary.
  fileprivate func encodeOnce(_ text: String) throws {
    var copy = self
    try copy.encode(text)
  }
}
