import Foundation
import KeepsakeArchive
import KeepsakeInspection
import Testing

/// A cell in an early version of the game, saved as one byte.
@Archivable(name: "Cell") private struct ThinCell { var kind: UInt8 }

/// The same cell in a later version, which takes 264 bytes of memory.
@Archivable(name: "Cell") private struct WideCell {
  var kind: UInt8
  var a = Block(), b = Block(), c = Block(), d = Block()
}

@Archivable private struct Block { var a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8 }

@Archivable(name: "Crate") private final class ThinCrate { init() {} }

@Archivable(name: "Crate") private final class WideCrate {
  var a = Block(), b = Block()
}

struct LimitTests {
  private func limits(_ set: (inout ArchiveLimits) -> Void) -> ArchiveLimits {
    var limits = ArchiveLimits()
    set(&limits)
    return limits
  }

  private func code(_ body: () throws -> Void) -> ArchiveError.Code? {
    do {
      try body()
      return nil
    } catch let error as ArchiveError {
      return error.code
    } catch {
      Issue.record(error)
      return nil
    }
  }

  /// Checks that exactly this much memory suffices, and that a lower limit is an error.
  private func expect<V: Archivable & Sendable>(
    _ value: V, takes bytes: Int, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let archive = try Archive.encode(value)
    let enough = limits { $0.memoryBytes = bytes }
    let less = limits { $0.memoryBytes = bytes - 1 }
    #expect(throws: Never.self, sourceLocation: sourceLocation) {
      try Archive.decode(V.self, from: archive, limits: enough)
    }
    #expect(
      code { _ = try Archive.decode(V.self, from: archive, limits: less) } == .limit, sourceLocation: sourceLocation)
  }

  @Test func listsHaveAtMostSoManyElements() throws {
    func check<V: Archivable>(_ value: V) throws {
      let bytes = try Archive.encode(value)
      for (elements, expected) in [(100, nil), (99, ArchiveError.Code.limit)] {
        let limits = limits { $0.elements = elements }
        #expect(code { _ = try Archive.decode(V.self, from: bytes, limits: limits) } == expected)
        #expect(code { _ = try ArchiveInspection(of: bytes, limits: limits) } == expected)
        #expect(code { _ = try ArchiveInspection.verify(bytes, limits: limits) } == expected)
      }
    }
    try check(Array(0..<100))
    try check((0..<100).map { "\($0)" })
    try check(Set(0..<100))
    try check(Dictionary(uniqueKeysWithValues: (0..<100).map { ($0, true) }))
  }

  @Test func memoryIsCountedBeforeItIsTaken() throws {
    try expect(Array(repeating: 1, count: 1_000), takes: 8_000 + 32)
    try expect(Array(repeating: UInt8(1), count: 1_000), takes: 1_000 + 32)
    try expect([true, false, true], takes: 3 + 32)
    try expect(Array(repeating: [7], count: 10), takes: (10 * 8 + 32) + 10 * (8 + 32))
    try expect(Set(0..<10), takes: 10 * 16 + 96)
    try expect([1: 1.5, 2: 2.5], takes: 2 * 32 + 96)
    try expect(String(repeating: "x", count: 16), takes: 16)
    try expect(Data(count: 100), takes: 100)
    try expect(URL(string: "a:b")!, takes: 320)
    try expect([URL(string: "a:b")!], takes: MemoryLayout<URL>.stride + 32 + 320)
    #expect(throws: Never.self) {
      try Archive.decode(
        String.self, from: Archive.encode("fifteen letters"), limits: limits { $0.memoryBytes = 2_000 })
    }
  }

  @Test func aSmallArchiveCanNotAskForMuchMemory() throws {
    let bytes = try Archive.encode((0..<10_000).map { ThinCell(kind: UInt8(truncatingIfNeeded: $0)) })
    #expect(bytes.count < 11_000)
    #expect(try Archive.decode([WideCell].self, from: bytes).count == 10_000)
    let oneMegabyte = limits { $0.memoryBytes = 1 << 20 }
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode([WideCell].self, from: bytes, limits: oneMegabyte)
    }
    #expect(error?.code == .limit && error?.message.contains("raise ArchiveLimits.memoryBytes") == true)
    #expect(try Archive.decode([ThinCell].self, from: bytes, limits: oneMegabyte).count == 10_000)
  }

  @Test(arguments: [10, 1_000]) func objectsAreCountedByTheirSavedProperties(count: Int) throws {
    let bytes = try Archive.encode((0..<count).map { _ in ThinCrate() })
    #expect(try Archive.decode([WideCrate].self, from: bytes).count == count)
    let tight = limits { $0.memoryBytes = 32 + count * 100 }
    #expect(code { _ = try Archive.decode([WideCrate].self, from: bytes, limits: tight) } == .limit)
    #expect(try Archive.decode([ThinCrate].self, from: bytes, limits: tight).count == count)
  }

  @Test func eachArchiveHasTheWholeLimit() throws {
    let value = Array(repeating: 1, count: 1_000)
    let bytes = try Archive.encode(value)
    let limits = limits { $0.memoryBytes = 10_000 }
    for _ in 0..<5 { #expect(try Archive.decode([Int].self, from: bytes, limits: limits) == value) }
    let tight = self.limits { $0.memoryBytes = 7_000 }
    #expect(code { _ = try Archive.decode([Int].self, from: bytes, limits: tight) } == .limit)
    #expect(try Archive.decode([Int].self, from: bytes) == value)
  }

  @Test("an archive has at most as many bytes as the limit when it is encoded and when it is decoded")
  func archivesHaveAtMostSoManyBytes() throws {
    let bytes = try Archive.encode([1, 2, 3])
    let (enough, less) = (limits { $0.archiveBytes = bytes.count }, limits { $0.archiveBytes = bytes.count - 1 })
    #expect(try Archive.encode([1, 2, 3], limits: enough) == bytes)
    #expect(try Archive.decode([Int].self, from: bytes, limits: enough) == [1, 2, 3])
    #expect(code { _ = try Archive.encode([1, 2, 3], limits: less) } == .limit)
    #expect(code { _ = try Archive.decode([Int].self, from: bytes, limits: less) } == .limit)
  }

  @Test("an archive has at most as many objects as the limit", arguments: [10, 1_000])
  func archivesHaveAtMostSoManyObjects(count: Int) throws {
    let bytes = try Archive.encode((0..<count).map { _ in ThinCrate() })
    let (enough, less) = (limits { $0.objects = count }, limits { $0.objects = count - 1 })
    #expect(try Archive.decode([ThinCrate].self, from: bytes, limits: enough).count == count)
    #expect(code { _ = try Archive.decode([ThinCrate].self, from: bytes, limits: less) } == .limit)
    #expect(code { _ = try Archive.encode((0..<count).map { _ in ThinCrate() }, limits: enough) } == nil)
    #expect(code { _ = try Archive.encode((0..<count).map { _ in ThinCrate() }, limits: less) } == .limit)
  }

  @Test func treesAreLimitedAndVerifyingTakesNone() throws {
    let bytes = try Archive.encode((0..<10_000).map { "\($0)" })
    let tight = limits { $0.memoryBytes = 100_000 }
    #expect(code { _ = try ArchiveInspection(of: bytes, limits: tight) } == .limit)
    #expect(throws: Never.self) { try ArchiveInspection.verify(bytes, limits: tight) }
    #expect(throws: Never.self) { try ArchiveInspection(of: bytes) }
  }

  @Test func theDescriptionOfTypesIsLimited() throws {
    let bytes = try Archive.encode(WideCell(kind: 1))
    #expect(code { _ = try ArchiveInspection.verify(bytes, limits: limits { $0.memoryBytes = 2_000 }) } == .limit)
    #expect(throws: Never.self) { try ArchiveInspection.verify(bytes, limits: limits { $0.memoryBytes = 8_000 }) }
  }

  /// Whatever limits a program sets, the result is a value or an error, never a trap.
  @Test func limitsMayBeAnything() throws {
    let bytes = try Archive.encode(["a": [Coded([1, 2, 3])]])
    for value in [Int.min, -1, 0, 1, .max] {
      let all: [WritableKeyPath<ArchiveLimits, Int>] = [
        \.archiveBytes, \.depth, \.objects, \.stringBytes, \.elements, \.memoryBytes, \.codedValues, \.types, \.fields,
      ]
      for path in all {
        let limits = limits { $0[keyPath: path] = value }
        let error = code { _ = try Archive.decode([String: [Coded<[Int]>]].self, from: bytes, limits: limits) }
        #expect(error == nil || error == .limit)
        #expect(value < .max || error == nil)
        _ = code { _ = try ArchiveInspection(of: bytes, limits: limits) }
        _ = code { _ = try Archive.encode(["a": [Coded([1, 2, 3])]], limits: limits) }
      }
    }
  }

  @Test func codedValuesAreLimitedToo() throws {
    let bytes = try Archive.encode(Coded(["a": Array(repeating: 1, count: 1_000)]))
    #expect(
      code {
        _ = try Archive.decode(Coded<[String: [Int]]>.self, from: bytes, limits: limits { $0.memoryBytes = 10_000 })
      } == .limit)
    #expect(try Archive.decode(Coded<[String: [Int]]>.self, from: bytes).value["a"]?.count == 1_000)
  }
}
