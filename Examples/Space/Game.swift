import Foundation
import Keepsake

/// A loop that never yields: keys, steps, a save when it is due, a frame, and a short sleep.
final class Game {
  /// The maximum number of steps that are caught up with; after a longer pause, the rest of the time is skipped.
  private static let catchUp = Int(World.rate)
  private static let keysHelp = "arrows steer  q quits  ^Z pauses"

  private let data: GameData
  private let scenery: Scenery
  private let terminal: Terminal
  private let options: Options
  private let record: FileHandle?
  private var world: World
  private var shown: Screen?
  private var note = Game.keysHelp
  private var noteEnd = 0

  init(_ data: GameData, _ scenery: Scenery, _ terminal: Terminal, _ options: Options) throws {
    (self.data, self.scenery, self.terminal, self.options) = (data, scenery, terminal, options)
    // Without a save, the ship starts in the middle.
    world = try data.saves.load(.main) ?? World()
    record = try options.record.map { file in
      if !FileManager.default.fileExists(atPath: file.path) { try Data().write(to: file) }
      let handle = try FileHandle(forWritingTo: file)
      try handle.seekToEnd()
      return handle
    }
  }

  func play() throws {
    let autosave = Autosave(data, to: .main, every: .seconds(options.every), within: options.within) {
      [unowned self] in world
    }
    autosave.onSuspend = { [unowned self] in terminal.restore() }
    autosave.onTerminate = { [unowned self] in terminal.restore() }
    autosave.onResume = { [unowned self] in
      terminal.take()
      shown = nil
    }
    terminal.take()
    defer { terminal.restore() }
    try keep()
    let begin = world.steps
    var stepped = 0
    var isOver = false
    var next = ContinuousClock.now
    while !isOver {
      for key in terminal.keys() {
        switch key {
        case .left: world.turn(degrees: -10)
        case .right: world.turn(degrees: 10)
        case .up: world.thrust()
        case .quit: isOver = true
        case .other: break
        }
      }
      let due = Int(autosave.playtime / .seconds(1) * World.rate)
      for _ in 0..<max(0, min(due - stepped, Self.catchUp)) where world.steps - begin < options.steps ?? .max {
        world.step()
      }
      stepped = due
      isOver = isOver || terminal.isAtEnd || world.steps - begin >= options.steps ?? .max
      try keep()
      do {
        // The process may be suspended here for a while, or terminate.
        try autosave.update()
      } catch {
        (note, noteEnd) = ("not saved: \(error)", world.steps + 3 * Int(World.rate))
      }
      draw()
      next = max(next + .seconds(1 / World.rate), .now - .milliseconds(50))
      Thread.sleep(forTimeInterval: max(0, (next - .now) / .seconds(1)))
    }
    // The player wants to quit, and no system ends the game meanwhile: a slow disk has time.
    try autosave.saveNow().wait(within: .seconds(30))
    try data.close(within: .seconds(30))
  }

  private func keep() throws { try record?.write(contentsOf: Data((world.bits + "\n").utf8)) }

  private func draw() {
    let (columns, rows) = terminal.size
    if world.steps >= noteEnd { note = Self.keysHelp }
    let frame = scenery.draw(world, note, columns: columns, rows: rows)
    terminal.show(frame.update(from: shown))
    shown = frame
  }
}
