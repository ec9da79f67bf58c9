import Foundation
import KeepsakeInspection
import TestSupport
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive

/// The program's type for the forged archives below: every field but `number` is skipped.
@Archivable private struct Known { var number = 0 }

/// Archives that nest deeper than any game's, or that expand to far more than their bytes, must crash neither the game
/// nor a tool that inspects them.
@Suite struct NestingTests {
  private let forge = Forged.self

  /// Runs on a thread with half the stack that Apple's systems give to secondary threads.
  private func onHalfStack<T: Sendable>(_ body: @escaping @Sendable () throws -> T) throws -> T {
    try onSmallStack(of: 256 << 10) { Result { try body() } }.get()
  }

  private func field(_ key: String, _ type: [UInt8]) -> [UInt8] { forge.join(forge.string(key), [0], type) }

  private func structure(_ name: String, _ fields: [UInt8]...) -> [UInt8] {
    forge.join(forge.type(.structure, name), forge.varint(fields.count), Array(fields.joined()))
  }

  /// A `Known` with one more field, whose type has number 1.
  private func archive(_ inner: [[UInt8]], deep: [UInt8]) -> Data {
    forge.archive(
      types: [structure("Known", field("deep", forge.named(1)), field("number", [WireCode.int64.rawValue]))] + inner,
      root: forge.named(0), value: forge.join(deep, forge.varint(14)))
  }

  /// Archives by name. In each, `levels` values of type 1 are nested in each other.
  private func chains(levels: Int) -> [(String, Data)] {
    let zero = forge.varint(0)
    let one = forge.varint(1)
    func list(_ code: WireCode) -> [UInt8] { forge.join([code.rawValue], forge.named(1)) }
    func repeated(_ bytes: [UInt8], _ last: [UInt8]) -> [UInt8] {
      Array((1..<levels).map { _ in bytes }.joined()) + last
    }
    let deepEnum = forge.join(
      forge.type(.enumeration, "E"), forge.varint(2), forge.string("end"), zero, forge.string("more"), one,
      field("0", forge.named(1)))
    let byKey = forge.join([WireCode.dictionary.rawValue], forge.named(1), [WireCode.bool.rawValue])
    let byValue = forge.join([WireCode.dictionary.rawValue, WireCode.bool.rawValue], forge.named(1))
    return [
      ("enum", archive([deepEnum], deep: repeated(one, zero))),
      ("optional", archive([structure("S", field("a", list(.optional)))], deep: repeated([1], [0]))),
      ("array", archive([structure("S", field("a", list(.array)))], deep: repeated(one, zero))),
      ("set", archive([structure("S", field("a", list(.set)))], deep: repeated(one, zero))),
      ("value", archive([structure("S", field("a", byValue))], deep: repeated(forge.join(one, [1]), zero))),
      (
        "key",
        archive(
          [structure("S", field("a", byKey))], deep: repeated(one, zero) + [UInt8](repeating: 1, count: levels - 1))
      ),
    ]
  }

  @Test func theDeepestArchiveFitsOnASmallStackInEveryForm() throws {
    for (name, bytes) in chains(levels: ArchiveLimits.standard.describedDepth / 2 - 1) {
      let decoded = try onHalfStack { try Archive.decode(Known.self, from: bytes).number }
      #expect(decoded == 7, "\(name)")
      let (text, json, line) = try onHalfStack {
        try ArchiveInspection.verify(bytes)
        let inspection = try ArchiveInspection(of: bytes)
        let again = try ArchiveInspection(of: bytes)
        guard inspection.root == again.root else { throw ArchiveError(.mismatch, "not equal to itself") }
        return (inspection.text(), inspection.json(), inspection.root.description)
      }
      #expect(text.contains("number: 7") && line.count > 100, "\(name)")
      #expect(json.contains(UInt8(ascii: "7")), "\(name)")
    }
  }

  @Test func whatNestsDeeperIsALimitAndNothingWorse() throws {
    for (name, bytes) in chains(levels: 100_000) {
      for attempt in 0..<3 {
        let error = #expect(throws: ArchiveError.self, "\(name)") {
          try onHalfStack {
            switch attempt {
            case 0: _ = try Archive.decode(Known.self, from: bytes)
            case 1: _ = try ArchiveInspection(of: bytes)
            default: try ArchiveInspection.verify(bytes)
            }
          }
        }
        #expect(error?.code == .limit, "\(name), attempt \(attempt)")
      }
    }
  }

  @Test func aStructInsideOfItselfIsALimit() throws {
    let bytes = archive([structure("S", field("a", forge.named(1)))], deep: [])
    for attempt in 0..<3 {
      let error = #expect(throws: ArchiveError.self) {
        try onHalfStack {
          switch attempt {
          case 0: _ = try Archive.decode(Known.self, from: bytes)
          case 1: _ = try ArchiveInspection(of: bytes)
          default: try ArchiveInspection.verify(bytes)
          }
        }
      }
      #expect(error?.code == .limit)
    }
  }

  /// A list of `count` structs of one byte, each wrapped in `wrappers` other structs.
  private func wrapped(_ count: Int, wrappers: Int) -> Data {
    let chain = (0..<wrappers).map { structure("S\($0)", field("a", forge.named($0 + 3))) }
    let last = structure("Last", field("a", [WireCode.bool.rawValue]))
    let list = structure("List", field("a", forge.join([WireCode.array.rawValue], forge.named(2))))
    return archive([list] + chain + [last], deep: forge.join(forge.varint(count), [UInt8](repeating: 1, count: count)))
  }

  @Test func aFewBytesDoNotBecomeGigabytes() throws {
    let honest = wrapped(100_000, wrappers: 5)
    #expect(try Archive.decode(Known.self, from: honest).number == 7)
    #expect(try ArchiveInspection(of: honest).types.map(\.count).reduce(0, +) == 600_002)
    let forged = wrapped(100_000, wrappers: 400)
    for attempt in 0..<3 {
      let error = #expect(throws: ArchiveError.self) {
        switch attempt {
        case 0: _ = try Archive.decode(Known.self, from: forged)
        case 1: _ = try ArchiveInspection(of: forged)
        default: try ArchiveInspection.verify(forged)
        }
      }
      #expect(error?.code == .limit && error?.message.contains("structs per byte") == true)
    }
  }

  @Test func checkingFindsWhatReadingFinds() throws {
    let good = try Archive.encode(GoldenWorld.make())
    #expect(try ArchiveInspection.verify(good) == ArchiveInspection(of: good).header)
    var random = Seeded(11)
    for index in 16..<good.count - 8 {
      var bad = good
      bad[index] ^= .random(in: 1...255, using: &random)
      bad = Archive.resealed(bad)
      let read = Result { try ArchiveInspection(of: bad).header }
      let checked = Result { try ArchiveInspection.verify(bad) }
      switch (read, checked) {
      case (.success(let a), .success(let b)): #expect(a == b)
      // The location in the error may differ, because reading keeps the values and so reads them one by one.
      case (.failure(let a as ArchiveError), .failure(let b as ArchiveError)): #expect(a.code == b.code)
      default: Issue.record("seed 11, byte \(index): \(read), \(checked)")
      }
    }
  }
}
