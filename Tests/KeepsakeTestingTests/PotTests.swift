import FlowerGarden
import Foundation
import Keepsake
import KeepsakeTesting
import Testing

/// Documents of 30 KB on two devices.
struct PotTests {
  @Test("a pot is a document of about 30 KB, and is sent at almost that size")
  func size() async throws {
    let pair = try await Pair(Pot(weather: 1))
    let bytes = try Archive.encode(Pot(weather: 1)).count
    #expect((28_000...32_000).contains(bytes), "\(bytes)")
    #expect(pair.phone.traffic.bytesSent > 28_000, "\(pair.phone.traffic)")
  }

  @Test("one changed field of a pot of 30 KB costs less than 1.3 KB of traffic in each direction")
  func cheapChange() async throws {
    let pair = try await Pair(Pot(weather: 2))
    let (sent, received) = (pair.phone.traffic, pair.tablet.traffic)
    // Ten changes, which separate the cost of a save from that of the exchanges themselves.
    for height in 1...10 {
      try await pair.here.change(pot: "sill") { $0.height = height }
      try await pair.here.game.cloud.sync()
      try await pair.there.game.cloud.sync()
      #expect(try pair.there.pot("sill").height == height)
    }
    let (up, down) = (pair.phone.traffic - sent, pair.tablet.traffic - received)
    #expect(up.bytesSent < 13_000, "a save \(up.bytesSent / 10) bytes, of \(up.requests) requests in all")
    #expect(down.bytesReceived < 13_000, "a save \(down.bytesReceived / 10) bytes, of \(down.requests) requests in all")
  }

  @Test("two devices change a pot in every field: each field is merged by its own rule, with the same result")
  func everyRule() async throws {
    var begun = Pot(weather: 3)
    begun.plant("tulip", id: "a")
    begun.plant("rose", id: "b")
    begun.ornaments = ["bell", "ribbon"]
    begun.labels = ["front": "Ada", "back": "old"]
    begun.notes = "begun"
    begun.firstBloom = 9
    let pair = try await Pair(begun)
    pair.cut()
    try await pair.here.change(pot: "sill") {
      $0.flowers[0].height = 7
      $0.flowers.remove(at: 1)
      $0.plant("violet", id: "c")
      $0.height = 4
      $0.firstBloom = 12
      $0.waterings += 3
      $0.visitors = ["bee"]
      $0.signatures = ["Ada": "star"]
      $0.ornaments = ["bell", "lamp"]
      $0.labels = ["front": "Ada and Bob"]
      $0.notes = "from the phone"
      $0.care.lastFed = 20
      $0.care.weedsPulled += 2
      $0.place = "balcony"
    }
    try await pair.there.change(pot: "sill") {
      $0.flowers[0].height = 5
      $0.flowers[0].kind = "black tulip"
      $0.plant("daisy", id: "d")
      $0.height = 9
      $0.firstBloom = 5
      $0.waterings += 2
      $0.visitors = ["snail"]
      $0.signatures = ["Bob": "moon"]
      $0.ornaments = ["ribbon", "bell", "wheel"]
      $0.labels["side"] = "Bob"
      $0.notes = "from the tablet"
      $0.care.lastFed = 10
      $0.care.weedsPulled += 5
      $0.soil = [UInt8](repeating: 1, count: $0.soil.count)
    }
    try await pair.heal()
    for garden in [pair.here, pair.there] {
      #expect(try garden.game.saves.conflict(.pot("sill"))?.sides.count == 2)
      let pot = try garden.pot("sill")
      // An array by id: one element removed, two added, one changed on both sides.
      #expect(Set(pot.flowers.map(\.id)) == ["a", "c", "d"])
      let tulip = try #require(pot.flowers.first { $0.id == "a" })
      #expect(tulip.height == 7 && tulip.kind == "black tulip")
      #expect(pot.height == 9)
      #expect(pot.firstBloom == 5)
      #expect(pot.waterings.value == 5)
      #expect(pot.visitors == ["bee", "snail"])
      #expect(pot.signatures == ["Ada": "star", "Bob": "moon"])
      #expect(pot.ornaments == ["bell", "lamp", "wheel"])
      #expect(pot.labels == ["front": "Ada and Bob", "side": "Bob"])
      #expect(pot.notes == "from the phone\nfrom the tablet")
      #expect(pot.care.lastFed == 20 && pot.care.weedsPulled.value == 7)
      #expect(pot.place == "balcony")
      let (soil, photo) = (pot.soil == [UInt8](repeating: 1, count: pot.soil.count), pot.photo == begun.photo)
      #expect(soil && photo)
    }
  }
}
