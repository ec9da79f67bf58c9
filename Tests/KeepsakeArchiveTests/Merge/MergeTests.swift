import Foundation
import KeepsakeArchive
import Testing

@testable import ArchiveWorlds

@Archivable struct Score: Equatable {
  @Merge(.max) var best = 0
  var holder = ""
}

@Archivable struct Profile: Equatable {
  @Merge(.max) var level = 1
  @Merge(.min) var fastest: Double?
  @Merge(.union) var seen: Set<String> = []
  @Merge(.union) var scores: [String: Score] = [:]
  @Merge(.counter) var kills = Counter()
  var hat = "none"
  var total = Score()
}

@Archivable struct Named {
  var name: String?
  @Merge(.max) var level = 1
}

@Archivable final class Log { @Merge(.union) var lines: Set<Int> = [] }

@Suite struct MergeTests {
  func merged(_ a: Profile, _ b: Profile, _ base: Profile? = nil) -> Profile {
    var result = a
    result.mergeFields(from: b, ancestor: base)
    return result
  }

  func saved(_ profile: Profile, by writer: UInt64) throws -> Profile {
    try Archive.decode(Profile.self, from: Archive.encode(profile, writer: writer))
  }

  @Test func levelSixIsNotOverwrittenByLevelTwo() {
    var six = Profile()
    six.level = 6
    six.fastest = 9
    var two = Profile()
    two.level = 2
    two.fastest = 12
    #expect(merged(six, two, Profile()).level == 6)
    #expect(merged(two, six, Profile()).level == 6)
    #expect(merged(two, six).fastest == 9)
    #expect(merged(Profile(), two).fastest == 12)
  }

  @Test func aHatChosenOnOneDeviceOnlyIsTakenOver() {
    var crown = Profile()
    crown.hat = "crown"
    #expect(merged(Profile(), crown, Profile()).hat == "crown")
    #expect(merged(crown, Profile(), Profile()).hat == "crown")
    #expect(merged(Profile(), crown).hat == "none")
    var helmet = Profile()
    helmet.hat = "helmet"
    #expect(merged(helmet, crown, Profile()).hat == "helmet")
  }

  @Test func withoutAnAncestorAnEmptyNameStaysEmpty() {
    var (mine, theirs) = (Named(name: nil), Named(name: "x"))
    mine.mergeFields(from: theirs, ancestor: nil)
    #expect(mine.name == nil)
    mine.mergeFields(from: theirs, ancestor: Named(name: nil))
    #expect(mine.name == "x")
    theirs.mergeFields(from: Named(name: nil), ancestor: Named(name: "x"))
    #expect(theirs.name == nil)
  }

  @Test func nestedValuesMergeByTheirOwnRules() {
    var a = Profile()
    a.total.best = 5
    a.scores = ["x": Score(best: 1, holder: "a"), "y": Score(best: 2, holder: "a")]
    var b = Profile()
    b.total.best = 3
    b.scores = ["x": Score(best: 4, holder: "b")]
    let result = merged(a, b)
    #expect(result.total.best == 5)
    #expect(result.scores == ["x": Score(best: 4, holder: "a"), "y": Score(best: 2, holder: "a")])
    #expect(Profile.archiveHasMergeRules && !Item.archiveHasMergeRules && Optional<Score>.archiveHasMergeRules)
  }

  @Test func killsOnTwoDevicesAddUp() throws {
    var base = Profile()
    base.kills += 10
    base = try saved(base, by: 1)
    var phone = base
    phone.kills += 5
    phone.kills -= 1
    var tablet = base
    tablet.kills += 7
    #expect(phone.kills.value == 14 && phone.kills.hasPendingChange)
    phone = try saved(phone, by: 1)
    tablet = try saved(tablet, by: 2)
    #expect(!phone.kills.hasPendingChange && phone.kills.value == 14)
    #expect(merged(phone, tablet, base).kills.value == 21)
    #expect(merged(tablet, phone, base).kills.value == 21)
    #expect(merged(merged(phone, tablet, base), tablet, base).kills.value == 21)
    #expect(merged(phone, tablet).kills == merged(tablet, phone).kills)
  }

  @Test("a counter that one device restored from an earlier save or reset stays lowered, and loses no later change")
  func lowered() throws {
    var early = Profile()
    early.kills += 10
    early = try saved(early, by: 1)
    var base = early
    base.kills += 5
    base = try saved(base, by: 1)
    var played = base
    played.kills += 3
    played = try saved(played, by: 2)
    for (lower, value) in [(early, 10), (Profile(), 0)] {
      #expect(merged(lower, base, base).kills.value == value)
      #expect(merged(base, lower, base).kills.value == value)
      #expect(merged(lower, played, base).kills.value == value + 3)
      #expect(merged(played, lower, base).kills.value == value + 3)
      // Without an ancestor, nobody knows which side is the later one.
      #expect(merged(lower, played).kills.value == 18 && merged(played, lower).kills.value == 18)
    }
  }

  @Test func savingTwiceDoesNotCountTwice() throws {
    var profile = Profile()
    profile.kills += 3
    let first = try Archive.encode(profile, writer: 4)
    #expect(try Archive.encode(profile, writer: 4) == first)
    #expect(try Archive.decode(Profile.self, from: first).kills.value == 3)
  }

  @Test("a counter prints as its value, pending changes included, also inside other values")
  func prints() {
    var counter = Counter(3)
    counter += 4
    #expect("\(counter)" == "7" && String(describing: [counter]) == "[7]")
    counter -= 9
    #expect(counter.description == "-2")
  }

  @Test func aCounterAtTheEndOfItsRangeDoesNotCrash() {
    var counter = Counter(.max)
    counter += .max
    counter += .max
    #expect(counter.value == .max)
    counter -= .min
    counter.add(.min)
    #expect(Counter(.min).value == -Int.max)
  }

  @Test(arguments: 0..<60 as Range<UInt64>) func mergingInAnyOrderGivesTheSame(seed: UInt64) throws {
    var random = Seeded(seed)
    func some() throws -> Profile {
      var profile = Profile()
      profile.level = .random(in: 0..<9, using: &random)
      profile.fastest = Bool.random(using: &random) ? Double.random(in: 0..<9, using: &random) : nil
      profile.seen = Set((0..<4).map { _ in "\(Int.random(in: 0..<9, using: &random))" })
      for writer in 1..<4 as Range<UInt64> {
        profile.kills += .random(in: -9..<9, using: &random)
        profile = try saved(profile, by: writer)
      }
      return profile
    }
    let (a, b, c) = (try some(), try some(), try some())
    #expect(merged(a, b) == merged(b, a), "seed \(seed)")
    #expect(merged(merged(a, b), c) == merged(a, merged(b, c)), "seed \(seed)")
    #expect(merged(a, a) == a, "seed \(seed)")
    #expect(merged(merged(a, b), b) == merged(a, b), "seed \(seed)")
  }

  @Test func aFinalClassMergesInPlace() {
    var (a, b) = (Log(), Log())
    a.lines = [1]
    b.lines = [2]
    a.mergeFields(from: b, ancestor: nil)
    #expect(a.lines == [1, 2])
    b = a
    #expect(b === a)
  }
}
