import Foundation
import TestSupport
import Testing

@testable import Keepsake

/// A player who turns the music off and then closes the window has turned it off.
@Suite struct AutosavePreferencesTests {
  @Test(
    "a preference set just before the game is suspended or terminated is durable with the save",
    arguments: [true, false])
  func chosenLast(isEnd: Bool) throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let autosave = Autosave(game, to: .main, atSignals: .ignored, within: Patience.limit) { World(level: 2) }
    // The commit that would follow by itself, a frame later, is held back.
    game.preferences.queue.suspend()
    defer { game.preferences.queue.resume() }
    game.preferences[PreferenceKey("music", default: true)] = false
    if isEnd { try autosave.terminate() } else { try autosave.suspend() }
    #expect(try game.core.store.read { try $0.preferences().kept.map(\.name) } == ["music"])
  }
}
