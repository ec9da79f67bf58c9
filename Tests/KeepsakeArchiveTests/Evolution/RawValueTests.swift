import Foundation
import KeepsakeArchive
import KeepsakeInspection
import Testing

/// An enum with raw values, in several versions of a program.
private enum First {
  @Archivable enum Medal: Int {
    case bronze = 1
    case silver, gold
  }
  @Archivable enum Tone: String {
    case low = "high"
    case high = "low"
  }
}
private enum Swapped {
  @Archivable enum Medal: Int {
    case gold = 1
    case silver, bronze
  }
  @Archivable enum Tone: String { case low, high }
}
private enum Renamed {
  @Archivable enum Medal: Int {
    case bronze = 1
    @Key("silver") case tin
    case gold
  }
}
private enum Careless {
  @Archivable enum Medal: Int {
    case bronze = 1
    case tin, gold
  }
}
private enum Plain {
  @Archivable enum Medal { case gold, bronze, silver }
}

@Archivable private struct Switches: OptionSet, Hashable {
  let rawValue: Int
  static let sound = Switches(rawValue: 1)
  static let music = Switches(rawValue: 2)
}

@Suite struct RawValueTests {
  private let medals: [First.Medal] = [.bronze, .silver, .gold]

  @Test("a case is saved by its name, not by its raw value")
  func names() throws {
    let bytes = try Archive.encode(medals)
    let text = try ArchiveInspection(of: bytes).text()
    for name in ["bronze", "silver", "gold"] { #expect(text.contains(".\(name)"), "\(text)") }
    #expect(try Archive.decode([First.Medal].self, from: bytes) == medals)
  }

  @Test("a case is the same one after its raw value became that of another case, was removed or was added")
  func otherRawValues() throws {
    let bytes = try Archive.encode(medals)
    #expect(try Archive.decode([Swapped.Medal].self, from: bytes) == [.bronze, .silver, .gold])
    #expect(try Archive.decode([Plain.Medal].self, from: bytes) == [.bronze, .silver, .gold])
    let plain = try Archive.encode([Plain.Medal.gold, .silver])
    #expect(try Archive.decode([First.Medal].self, from: plain) == [.gold, .silver])
    let tones = try Archive.encode([First.Tone.low, .high])
    #expect(try Archive.decode([Swapped.Tone].self, from: tones) == [.low, .high])
  }

  @Test("a renamed case needs its old name as its key; its unchanged raw value isn't enough")
  func renamedCases() throws {
    let bytes = try Archive.encode(medals)
    #expect(try Archive.decode([Renamed.Medal].self, from: bytes) == [.bronze, .tin, .gold])
    let again = try Archive.encode([Renamed.Medal.tin])
    #expect(try Archive.decode([First.Medal].self, from: again) == [.silver])
    let error = #expect(throws: ArchiveError.self) { try Archive.decode([Careless.Medal].self, from: bytes) }
    #expect(error?.code == .unknownCase && error?.message.contains("silver") == true)
  }

  @Test("an option set is saved by its raw value, which is all it has")
  func optionSets() throws {
    let bytes = try Archive.encode([Switches.sound, [.sound, .music]])
    #expect(try Archive.decode([Switches].self, from: bytes) == [.sound, [.sound, .music]])
    let both = try ArchiveInspection(of: Archive.encode([Switches.sound, .music] as Switches))
    #expect(both.root["rawValue"] == .integer(3))
  }
}
