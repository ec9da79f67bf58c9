import Foundation
import KeepsakeArchive
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeInspection

@Suite struct InspectionTests {
  @Test func aSaveCanBeReadWithoutTheGame() throws {
    let bytes = try Archive.encode(GoldenWorld.make())
    let inspection = try ArchiveInspection(of: bytes)
    #expect(
      inspection.header.formatVersion == 1 && inspection.header.objectCount == 3
        && inspection.header.byteCount == bytes.count)
    let world = try #require(inspection.root["first"])
    #expect(world["name"] == .string("golden"))
    #expect(world["creatures"] == .array([.reference(0), .reference(1), .reference(2)]))
    let boss = try #require(inspection.objects[1])
    #expect(inspection.types[boss.type].name == "Boss" && inspection.types[boss.type].count == 1)
    #expect(boss.fields.first { $0.key == "rage" }?.value == .integer(300))
    #expect(boss.fields.first { $0.key == "friends" }?.value == .array([.reference(0), .reference(1)]))
    let everything = try #require(inspection.root["second"])
    #expect(everything["u"] == .unsigned(.max) && everything["i64"] == .integer(.min))
    #expect(everything["v2"] == .vector([.number(1), .number(2)]))
    #expect(everything["map"]?["c"] == .array([.integer(300), .integer(-70000)]))
    let text = inspection.text()
    #expect(
      text.contains("friends: [#0 Creature, #1 Boss]") && text.contains("rage: 300")
        && text.contains("case said(0: string, 1: int64?)"))
  }

  @Test func theJSONFormIsJSON() throws {
    let inspection = try ArchiveInspection(of: Archive.encode(GoldenWorld.make()))
    let json = try JSONSerialization.jsonObject(with: inspection.json()) as? [String: Any]
    let objects = try #require(json?["objects"] as? [[String: Any]])
    #expect(objects.count == 3 && objects[1]["$type"] as? String == "Boss")
    #expect((objects[0]["target"] as? [String: Int]) == ["$ref": 1])
  }

  @Test func handWrittenValuesShowTheirKeys() throws {
    let inspection = try ArchiveInspection(of: Archive.encode([HandKeyed(text: "a", number: 3)]))
    guard case .array(let values) = inspection.root else {
      Issue.record("no array")
      return
    }
    #expect(values[0]["text"] == .string("a") && values[0]["number"] == .integer(3))
  }

  @Test func inspectingAlteredArchivesNeverCrashes() throws {
    let good = try Archive.encode(GoldenWorld.make())
    var random = Seeded(3)
    for index in 16..<good.count - 8 {
      var bad = good
      bad[index] ^= .random(in: 1...255, using: &random)
      do { _ = try ArchiveInspection(of: Archive.resealed(bad)).text() } catch {
        #expect(error is ArchiveError, "seed 3, byte \(index): \(error)")
      }
    }
  }
}
