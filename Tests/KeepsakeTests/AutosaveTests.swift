import Foundation
import Keepsake
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

@Suite(.serialized) struct AutosaveTests {
  let device: Device

  init() throws { device = try Device() }

  @Test("an autosave saves when it is time, at once when it matters, and nothing when nothing changed (R9)")
  func saves() throws {
    let game = try device.open()
    defer { end(game) }
    var world = World(level: 1)
    let title = { SaveMetadata(title: "t") }
    let autosave = Autosave(game, to: .main, every: .seconds(30), atSignals: .ignored, metadata: title, value: { world })
    func saved() throws -> Int { try game.saves.load(.main).map { _ in try game.saves.history(of: .main).count } ?? 0 }
    try autosave.update()
    #expect(try saved() == 0)
    device.clock.advance(by: .seconds(30))
    try autosave.update()
    try autosave.update()
    #expect(try saved() == 1)
    device.clock.advance(by: .seconds(40))
    try autosave.update()
    #expect(try saved() == 1, "the world did not change")
    world.level = 2
    try autosave.update()
    #expect(try saved() == 1)
    autosave.setNeedsSave()
    try autosave.update()
    try autosave.update()
    #expect(try saved() == 2)
    world.level = 3
    try autosave.saveNow().wait()
    #expect(try saved() == 3)
    #expect(try game.saves.history(of: .main).first?.metadata.title == "t")
  }

  @Test("a save that could not be kept is told by the next update")
  func tellsFailure() throws {
    let game = try device.open()
    let world = World(level: 1)
    let autosave = Autosave(game, to: .main, atSignals: .ignored) { world }
    try game.close()
    #expect(throws: StoreError.self) { try autosave.saveNow() }
  }

  @Test("a game that is told to end saves what the player has, then ends by the signal", arguments: [SIGTERM, SIGINT, SIGHUP])
  func signals(number: Int32) async throws {
    let path = device.url.path
    await #expect(processExitsWith: .signal(number)) { [path = path as String, number = number as Int32] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      var world = World(level: 41)
      let autosave = Autosave(game, to: .main, every: .seconds(3_600)) { world }
      world.level = 42
      kill(getpid(), number)
      while true {
        try autosave.update()
        usleep(1_000)
      }
    }
    let game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(.main)?.level == 42)
  }

  @Test("a game that is told to end saves every slot that it autosaves, not the first only")
  func signalsWithTwo() async throws {
    let path = device.url.path
    await #expect(processExitsWith: .signal(SIGTERM)) { [path = path as String] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      let first = Autosave(game, to: "first", every: .seconds(3_600)) { World(level: 1) }
      let second = Autosave(game, to: "second", every: .seconds(3_600)) { World(level: 2) }
      kill(getpid(), SIGTERM)
      while true {
        try first.update()
        try second.update()
        usleep(1_000)
      }
    }
    let game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(Slot<World>("first"))?.level == 1)
    #expect(try game.saves.load(Slot<World>("second"))?.level == 2)
  }

  @Test("a game that wants to end by itself is told")
  func continues() async throws {
    let path = device.url.path
    await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), atSignals: .saveAndContinue) { World(level: 5) }
      kill(getpid(), SIGTERM)
      while !autosave.isEndRequested {
        try autosave.update()
        usleep(1_000)
      }
      try game.close()
      exit(7)
    }
    let game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(.main)?.level == 5)
  }
}
