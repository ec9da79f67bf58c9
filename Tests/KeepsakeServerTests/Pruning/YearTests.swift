#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("A year of a player")
struct YearTests {
  /// Autosaves of an hour a day: with many rounds, one every thirty seconds.
  private static let savesADay = TestDepth.savesADay
  private static let days = 365
  /// The device that is away doesn't come between these days.
  private static let absence = 40..<311

  @Test(
    "what a cloud keeps of a player stops growing, and a device that was away for nine months has all again",
    .hangLimit)
  func year() async throws {
    try await TemporaryFolder.with { folder in
      var lab = try PruningLab(in: folder, players: 3)
      let empty = try await lab.databaseBytes()
      let first = lab.now
      var months: [(total: Int, beside: Int)] = []
      var unsent: VersionID?
      var basis: [VersionID] = []
      for day in 0..<Self.days {
        let start = first + Int64(day) * PruningLab.day
        lab.now = start
        for index in [1, 2] where (index == 2 ? !Self.absence.contains(day) : day % 3 == 0) {
          try await lab.sync(index)
        }
        // The devices take turns; the last one plays only before it is away.
        let player = day % 3 == 0 ? 1 : day % 7 == 0 && day < Self.absence.lowerBound ? 2 : 0
        try await lab.sync(player)
        for number in 0..<Self.savesADay {
          lab.now = start + Int64(number) * 3_600_000 / Int64(Self.savesADay)
          lab.save(player)
          try await lab.sync(player)
        }
        if day == Self.absence.lowerBound - 1 {
          // Its last game, somewhere without a network.
          try await lab.sync(2)
          basis = lab.players[2].heads
          unsent = lab.save(2)
        }
        lab.now = start + 4 * 3_600_000
        try await lab.prune()
        if day == Self.absence.upperBound - 1 {
          lab.now += 3_600_000
          try await returns(&lab, unsent: #require(unsent), basis: basis)
        }
        if day % 30 == 29 {
          let total = try await lab.databaseBytes() - empty
          months.append((total, total - (try await lab.keptByRulesBytes())))
          print("month \(months.count): \(total) bytes, \(months[months.count - 1].beside) beside heads and history")
        }
      }
      #expect(months.allSatisfy { $0.beside <= 3_000_000 }, "\(months)")
      // From the third month on. What a page has beside its rows isn't counted as history, and grows with it.
      let later = months.dropFirst(2).map(\.beside)
      let (least, most) = (later.min() ?? 0, later.max() ?? 0)
      #expect(Double(most) <= 1.25 * Double(least) + 50_000, "\(months)")
      #expect(lab.players.allSatisfy { $0.restarts == 0 })

      // A new device.
      lab.players.append(contentsOf: [PruningLab.Player(), PruningLab.Player()])
      try await lab.sync(4)
      #expect(lab.players[4].exchanges <= 4)
      #expect(lab.players[4].heads == lab.players[0].heads || lab.players[4].heads == lab.players[1].heads)
      print("a new device: \(lab.players[4].exchanges) exchanges, \(lab.players[4].records.count) records")
      try await lab.storage.close()
    }
  }

  private func returns(_ lab: inout PruningLab, unsent: VersionID, basis: [VersionID]) async throws {
    try await lab.sync(2)
    #expect(lab.players[2].restarts == 0, "its cursor isn't known any more")
    let heads = lab.players[2].heads
    #expect(heads.count == 2 && heads.contains(unsent), "\(heads)")
    // Another device merges from the same ancestor, and so does a new one.
    try await lab.sync(0)
    #expect(lab.players[0].heads == heads)
    lab.players.append(PruningLab.Player())
    try await lab.sync(3)
    #expect(lab.players[3].heads == heads)
    for player in lab.players {
      let ancestors = try Resolution.commonAncestors(of: heads) { player.records[$0] }
      if player.heads == heads { #expect(ancestors.known == basis && ancestors.related) }
    }
    let snapshot = try await lab.snapshot()
    #expect(basis.allSatisfy { snapshot.room.holders[$0] != nil }, "the contents of the ancestor are gone")
    lab.players.removeLast()
    // It is removed again: a device that is never seen again keeps a day of versions.
    let (now, removed) = (lab.now, PruningLab.id(3))
    #expect(try await lab.storage.retire(removed, of: PruningLab.container, now: now) != nil)
    // The player continues from both.
    lab.save(2)
    try await lab.sync(2)
    for index in [0, 1] {
      try await lab.sync(index)
      #expect(lab.players[index].heads == lab.players[2].heads && lab.players[index].heads.count == 1)
    }
  }
}
#endif
