import Foundation
import Keepsake

// Plays a level by itself, and stops and saves at the requested tick. If continued from there, it ends as if it had not
// been stopped.

extension Slot<Game> { static let night = Slot("night") }

let usage = """
  usage: DeadPanic --data FOLDER [--level NAME] [--seed NUMBER] [--ticks COUNT] [--watch]
    --data    the folder of the saved game; a night that was begun there continues
    --level   \(Level.names.joined(separator: " or ")); graveyard by default
    --ticks   stop and save after so many ticks; by default at the end of the night
    --watch   show every tick
  """

struct Options {
  var data: URL?
  var level = "graveyard"
  var seed: UInt64 = 1
  var ticks = Int.max
  var watches = false

  /// Returns nil for an unknown option.
  init?(_ arguments: [String]) {
    var rest = arguments[...]
    while let name = rest.popFirst() {
      if name == "--watch" {
        watches = true
        continue
      }
      guard let value = rest.popFirst() else { return nil }
      switch name {
      case "--data": data = URL(fileURLWithPath: value)
      case "--level": level = value
      case "--seed":
        guard let number = UInt64(value) else { return nil }
        seed = number
      case "--ticks":
        guard let number = Int(value), number >= 0 else { return nil }
        ticks = number
      default: return nil
      }
    }
  }
}

func play(_ options: Options, in folder: URL) throws {
  let data = try GameData.open("com.example.deadpanic", at: folder)
  var game: Game
  if let saved = try data.saves.load(.night) {
    game = saved
    print("The night continues at tick \(game.tick).")
  } else {
    guard let level = Level.named(options.level) else {
      throw ArchiveError(
        .missing, "there is no level \"\(options.level)\", only \(Level.names.joined(separator: " and "))")
    }
    game = Game(level: level, seed: options.seed)
  }
  var ticks = 0
  while game.outcome == nil, ticks < options.ticks, game.tick < Game.maximumTicks {
    game.step()
    ticks += 1
    if options.watches {
      print("\u{1B}[H\u{1B}[2J" + game.picture)
      Thread.sleep(forTimeInterval: 0.05)
    }
  }
  if !options.watches { print(game.picture) }
  print(game.outcome ?? "Stopped at tick \(game.tick), and saved.")
  try data.saves.capture(game, to: .night, SaveMetadata(title: game.level.name, progress: Double(game.tick))).wait()
  try data.close(within: .seconds(5))
}

guard let options = Options(Array(CommandLine.arguments.dropFirst())), let folder = options.data else {
  FileHandle.standardError.write(Data((usage + "\n").utf8))
  exit(64)
}
do {
  try play(options, in: folder)
} catch {
  FileHandle.standardError.write(Data("DeadPanic: \(error)\n".utf8))
  exit(1)
}
