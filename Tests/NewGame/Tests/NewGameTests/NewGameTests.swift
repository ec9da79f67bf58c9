import Keepsake
import KeepsakeTesting
import Testing

@Archivable struct World {
  @Merge(.max) var level = 1
}
extension Slot<World> { static let main = Slot("main") }

/// A game's own test of its saves, as the article TestingYourGame has it.
@Test("a game left on the phone goes on where it was on the tablet, also after a kill")
func goesOnOnTheTablet() async throws {
  let world = TestWorld()
  let phone = try world.device("phone")
  let tablet = try world.device("tablet").open("com.example.space")
  let game = try phone.open("com.example.space")
  try await game.saves.save(World(level: 7), to: .main)
  try phone.kill()
  try phone.open("com.example.space")
  try await world.settle()
  #expect(try tablet.saves.load(.main)?.level == 7)
}
