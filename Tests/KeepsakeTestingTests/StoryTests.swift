import FlowerGarden
import Foundation
import Keepsake
import KeepsakeTesting
import TestSupport
import Testing

// The article TestingYourGame contains the next function word for word: `StoryDocumentTests` compares them.

@Test("a month apart on two devices: no level goes back, no flower is lost, and nobody spends what isn't there")
func flowerGarden() async throws {
  let world = TestWorld()
  let phone = try world.device("phone")
  let tablet = try world.device("tablet")
  let here = try phone.open("com.example.garden")
  let there = try tablet.open("com.example.garden")
  try here.wallet.claim(100, .gems, key: "starter gift", for: "starter gift")
  try await here.saves.save(Pot(), to: .pot("windowsill"))
  try await world.settle()

  phone.network = .cut
  tablet.network = .cut
  world.clock.advance(days: 30)
  for (game, level, flower, waterings) in [(here, 6, "violet", 3), (there, 2, "daisy", 2)] {
    var pot = try #require(try game.saves.load(.pot("windowsill")))
    pot.plant(flower, id: flower)
    pot.water(waterings)
    try await game.saves.save(pot, to: .pot("windowsill"))
    try await game.progress.record(level, for: .level).value
    try game.wallet.spend(30, .gems, for: "a sunshade")
    #expect(throws: GameDataError.self) { try game.wallet.spend(30, .gems, for: "a fountain") }
  }
  try phone.kill()  // The battery is empty.

  phone.network = .good
  tablet.network = .good
  let again = try phone.open("com.example.garden")
  try await world.settle()
  for game in [again, there] {
    let pot = try #require(try game.saves.load(.pot("windowsill")))
    #expect(Set(pot.flowers.map(\.kind)) == ["violet", "daisy"] && pot.waterings.value == 5)
    #expect(game.progress[.level] == 6 && game.wallet[.gems].total == 40)
  }
}

/// Developers copy the code in the article, so it must be the code that runs here.
struct StoryDocumentTests {
  static let root = Repository.root

  /// The lines of the story's function, from its attribute to its last brace.
  static func story(in text: String) throws -> [Substring] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let first = try #require(lines.firstIndex { $0.hasPrefix("@Test(\"a month apart") })
    let last = try #require(lines[first...].firstIndex { $0 == "}" })
    return Array(lines[first...last])
  }

  @Test("the story in the documentation is the tested one, and has at most 30 lines")
  func storyAgrees() throws {
    let tested = try Self.story(in: String(contentsOf: URL(filePath: #filePath), encoding: .utf8))
    let article = Self.root.appending(path: "Sources/Keepsake/Documentation.docc/TestingYourGame.md")
    let shown = try Self.story(in: String(contentsOf: article, encoding: .utf8))
    #expect(tested == shown)
    // Without the attribute, the function's head, its brace and empty lines.
    #expect(tested.dropFirst(2).dropLast().count { !$0.isEmpty } <= 30)
  }
}
