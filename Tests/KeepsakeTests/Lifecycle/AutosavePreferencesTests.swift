import Foundation
import TestSupport
import Testing

@testable import Keepsake

/// Whoever turns the music off and then closes the window has turned it off.
@Suite struct AutosavePreferencesTests {
  @Test("what was set just before the game is stopped or ended is durable with the save", arguments: [true, false])
  func chosenLast(isEnd: Bool) throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let autosave = Autosave(game, to: .main, atSignals: .ignored, within: Patience.limit) { World(level: 2) }
    // The commit that would come by itself, a frame later, doesn't come.
    game.preferences.queue.suspend()
    defer { game.preferences.queue.resume() }
    game.preferences[PreferenceKey("music", default: true)] = false
    if isEnd { try autosave.terminate() } else { try autosave.suspend() }
    #expect(try game.core.store.read { try $0.preferences().kept.map(\.name) } == ["music"])
  }
}
