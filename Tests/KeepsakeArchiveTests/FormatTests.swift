import Foundation
import KeepsakeArchive
import TestSupport
import Testing

@testable import ArchiveWorlds

@Suite struct FormatTests {
  private static let fixture = Repository.root.appending(path: "Tests/KeepsakeArchiveTests/Fixtures/world-v1.keepsake")

  @Test func savesOfTheFirstReleaseCanBeReadForEver() throws {
    let golden = try Data(contentsOf: Self.fixture)
    let pair = try Archive.decode(Pair<World, Everything>.self, from: golden)
    #expect(pair.second == Everything())
    let creatures = pair.first.creatures
    #expect(creatures.map(\.name) == ["Held 🗡️", "boss", "minion"])
    #expect(creatures[0].target === creatures[1] && creatures[1].friends[1] === creatures[1])
    #expect((creatures[1] as? Boss)?.rage == 300 && (creatures[2] as? Minion)?.master === creatures[1])
    #expect(pair.first.events[3] == .both(.idle, .said("y", 7)))
  }

  @Test func equalWorldsGiveTheGoldenBytesInEveryProcess() throws {
    let bytes = try Archive.encode(GoldenWorld.make())
    if ProcessInfo.processInfo.environment["KEEPSAKE_WRITE_FIXTURES"] == "1",
      !FileManager.default.fileExists(atPath: Self.fixture.path)
    {
      try bytes.write(to: Self.fixture)
    }
    #expect(try bytes == Data(contentsOf: Self.fixture))
    #expect(try Archive.encode(Archive.decode(Pair<World, Everything>.self, from: bytes)) == bytes)
  }

  @Test func theOrderInWhichASetWasFilledDoesNotShow() throws {
    let words = (0..<200).map { "word \($0)" }
    let one = Dictionary(uniqueKeysWithValues: words.map { ($0, Set([$0, "x"])) })
    var two: [String: Set<String>] = Dictionary(minimumCapacity: 4000)
    for word in words.reversed() { two[word] = ["x", word] }
    #expect(try Archive.encode(one) == Archive.encode(two))
    func tokens(_ ids: [Int]) -> Tokens {
      let all = ids.map { Token($0) }
      return Tokens(set: Set(all), counts: Dictionary(uniqueKeysWithValues: all.map { ($0, "\($0.id)") }))
    }
    let bytes = try Archive.encode(tokens(Array(0..<100)))
    #expect(try bytes == Archive.encode(tokens(Array((0..<100).reversed()))))
    let copy = try Archive.decode(Tokens.self, from: bytes)
    #expect(copy.set.count == 100 && copy.counts[Token(7)] == "7")
    #expect(copy.counts.keys.allSatisfy { key in copy.set.contains { $0 === key } })
  }

  @Test func theChecksumIsTheOneThatTheFormatNames() {
    #expect(Archive.checksum([]) == 0xEF46_DB37_51D8_E999)
    #expect(Archive.checksum(Array("abc".utf8)) == 0x44BC_2CF5_AD77_0999)
    #expect(Archive.checksum((0..<100).map { UInt8($0) }) == 0x6AC1_E580_3216_6597)
  }

  @Test func aMillionTilesTakeAMillionBytes() throws {
    let tiles = (0..<1_000_000).map { $0 % 200 }
    let bytes = try Archive.encode(tiles)
    #expect(bytes.count < 2_000_100)
    #expect(try Archive.decode([Int].self, from: bytes) == tiles)
  }

  @Test func integersAtEveryEdgeOfTheirEncodingComeBack() throws {
    var values: [UInt64] = [0, .max]
    for bit in 0..<64 as Range<UInt64> { for step in 0..<3 as Range<UInt64> { values.append((1 << bit) &+ step &- 1) } }
    let signed = values.map { Int64(bitPattern: $0) }
    let pairs = values.map { Pair(first: $0, second: Int64(bitPattern: $0)) }
    let copy = try Archive.decode([Pair<UInt64, Int64>].self, from: Archive.encode(pairs))
    #expect(copy.map(\.first) == values && copy.map(\.second) == signed)
  }
}
