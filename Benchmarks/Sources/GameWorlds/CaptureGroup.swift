import BenchmarkKit
import Foundation
import Keepsake

/// What a frame of the game pays for an autosave: the call to `capture`, up to its return. Writing to the disk goes on
/// elsewhere.
public enum CaptureGroup {
  public static let name = "capture"

  /// Hands out the task while the game's data is open.
  public static func withTask(_ body: (TimedTask) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-benchmark-\(ProcessInfo.processInfo.processIdentifier)")
    let game = try GameData.open("benchmark", at: folder)
    defer {
      // Only leaves a folder behind among the temporary files.
      try? FileManager.default.removeItem(at: folder)
    }
    let slot = Slot<Dungeon>("main")
    var dungeon = Dungeon.sample(heroes: DungeonGroup.heroes)
    try body(
      TimedTask(
        "Keepsake", "capture", bytes: try Archive.encode(dungeon),
        timed: {
          // An unchanged value would write nothing.
          dungeon.level += 1
          let clock = ContinuousClock()
          let start = clock.now
          let pending = try game.saves.capture(dungeon, to: slot)
          let took = clock.now - start
          try pending.wait()
          return took
        }))
    try BenchmarkError.require(
      try game.saves.load(slot)?.equals(dungeon) == true, "The saved game differs from what was captured")
    try game.close(within: .seconds(10))
  }
}
