import Foundation
import KeepsakeArchive
import Testing

@testable import ArchiveWorlds

/// Types that a newer program saves.
private enum Newer {
  @Archivable enum Pet: Hashable {
    case cat
    case dragon(name: String, fire: [Int: Double])
    case hydra
    case other(String)
  }
  @Archivable enum Weather {
    case sun
    case hail(Int, deep: [String?])
    case fog
  }
  @Archivable enum Rank: String { case low, godlike }
  @Archivable struct Zoo {
    var pets: [Pet] = [.cat, .dragon(name: "Fuchur", fire: [1: 2]), .hydra, .cat]
    var weather = Weather.hail(3, deep: ["x", nil])
    var rank = Rank.godlike
    var kinds: Set<Pet> = [.cat, .hydra, .dragon(name: "x", fire: [:])]
    var counts: [Weather2: Int] = [.fog: 1, .hail: 2, .sun: 3]
    var after = "end"
  }
  @Archivable enum Weather2 { case sun, hail, fog }
}

/// The types of this program.
private enum Known {
  @Archivable enum Pet: Hashable {
    @Fallback case other(String)
    case cat
  }
  @Archivable enum Weather: Equatable {
    case sun
    @Fallback case unknown
  }
  @Archivable enum Rank: String {
    case low
    @Fallback case unknown = "?"
  }
  @Archivable struct Zoo {
    var after = ""
    var pets: [Pet] = []
    var weather = Weather.sun
    var rank = Rank.low
    var kinds: Set<Weather3> = []
    var counts: [Weather2: Int] = [:]
  }
  @Archivable enum Weather2 {
    case sun
    @Fallback case unknown
  }
  @Archivable enum Weather3 {
    case cat
    @Fallback case unknown
  }
  @Archivable(name: "Weather") enum Spoken: Equatable {
    case quiet
    @Fallback case said(text: String = "nothing")
  }
}

@Suite struct FallbackTests {
  @Test func aSaveWithCasesOfANewerProgramStillLoads() throws {
    let zoo = try Archive.decode(Known.Zoo.self, from: Archive.encode(Newer.Zoo()))
    #expect(zoo.pets == [.cat, .other("dragon"), .other("hydra"), .cat])
    #expect(zoo.weather == .unknown && zoo.rank == .unknown && zoo.after == "end")
  }

  @Test func severalUnknownCasesInASetBecomeOneInsteadOfLookingLikeDamage() throws {
    let zoo = try Archive.decode(Known.Zoo.self, from: Archive.encode(Newer.Zoo()))
    #expect(zoo.kinds == [.cat, .unknown])
    // In the order of the saved bytes, fog comes after hail.
    #expect(zoo.counts == [.sun: 3, .unknown: 1])
  }

  @Test func theFallbackItselfIsSavedAsTheCaseThatItIs() throws {
    let bytes = try Archive.encode([Known.Pet.other("dragon"), .cat])
    #expect(try Archive.decode([Known.Pet].self, from: bytes) == [.other("dragon"), .cat])
    #expect(try Archive.decode([Newer.Pet].self, from: bytes) == [.other("dragon"), .cat])
    let spoken = try Archive.encode([Known.Spoken.said(text: "x"), .quiet])
    #expect(try Archive.decode([Known.Spoken].self, from: spoken) == [.said(text: "x"), .quiet])
    #expect(try Archive.decode([Known.Spoken].self, from: Archive.encode([Newer.Weather.sun])) == [.said(text: "sun")])
  }

  @Test func withoutAFallbackTheUnknownCaseIsNamed() throws {
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(Rank.self, from: Archive.encode(Newer.Rank.godlike))
    }
    #expect(error?.code == .unknownCase && error?.message.contains("godlike") == true && error?.type == "Rank")
  }
}
