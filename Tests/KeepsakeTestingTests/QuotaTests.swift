import FlowerGarden
import Foundation
import Keepsake
import KeepsakeTesting
import Testing

/// A player who has used up their quota in the cloud.
struct QuotaTests {
  @Test("a refusal has its slot, reason and quota; a deletion on another device lets the save through automatically")
  func status() async throws {
    let pair = try await Pair()
    for number in 0..<40 { try await pair.here.plant("old flower \(number) \(UUID())", in: "balcony") }
    try await pair.world.settle()
    pair.world.cloud.quota = 1
    try await pair.here.plant("tulip", in: "sill")
    try pair.here.reach(level: 5)
    let owed = try await debts(of: pair.world)
    #expect(owed.map(\.device) == ["phone"])
    let refusal = try #require(pair.here.game.cloud.status.refusals.first)
    #expect(refusal.reason == .quota && refusal.slot?.contains("sill") == true && refusal.message.contains("delete"))
    let quota = try #require(refusal.quota)
    #expect(quota.limit == 1 && quota.used > 1 && quota.needed > 0)
    #expect(pair.here.game.incidents.contains { $0.kind == .refusedByCloud })
    #expect(pair.there.game.progress[.level] == 5, "a value waited for the refused save")

    // One byte less than the save needs is free, until the balcony is deleted.
    pair.world.cloud.quota = quota.used + quota.needed - 1
    // A deletion covers what its player has seen.
    #expect(try pair.there.pot("balcony").flowers.count == 40)
    _ = try pair.there.game.saves.delete(.pot("balcony"))
    try await pair.world.settle()
    #expect(try pair.there.pot("sill").flowers.map(\.kind) == ["tulip"])
    #expect(pair.here.game.cloud.status.refusals.isEmpty)
  }
}
