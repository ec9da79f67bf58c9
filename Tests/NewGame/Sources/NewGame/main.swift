import Keepsake

@Archivable struct World {
  @Merge(.max) var level = 1
  var ship = SIMD2<Float>(160, 240)
  @Unsaved var sparks = 0
}
extension Slot<World> { static let main = Slot("main") }

let game = try GameData.open("com.example.space")
var world = try game.saves.load(.main) ?? World()
let autosave = Autosave(game, to: .main, every: .seconds(30)) { world }
world.level += 1
try autosave.update()
try autosave.saveNow()
try game.close(within: .seconds(2))
print("level \(world.level)")
