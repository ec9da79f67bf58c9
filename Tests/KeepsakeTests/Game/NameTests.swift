import Foundation
import Keepsake
import KeepsakeReplication
import TestSupport
import Testing

@Suite struct NameTests {
  let device: Device

  init() throws { device = try Device() }

  @Test("every kind of name that is empty or too long is misuse, and the error has the kind, the limit and the length")
  func everyKind() throws {
    let game = try device.open()
    defer { end(game) }
    let gems = Currency("gems")
    let file = device.folder.url.appendingPathComponent("a.dat")
    let uses: [(rule: NameRule, use: (String) throws -> Void)] = [
      (.slot, { try game.saves.capture(World(), to: Slot<World>($0)) }),
      (.trackedFile, { _ = try game.files.track(file, as: $0) }),
      (.preference, { try game.preferences.set(1, for: PreferenceKey($0, default: 0)) }),
      (.value, { try game.progress.record(1, for: ProgressKey($0, default: 0, rule: .max)) }),
      (.board, { try game.scores.submit(1, to: Board($0, order: .descending)) }),
      (.player, { try game.scores.submit(1, to: Board("easy", order: .descending), player: $0) }),
      (.currency, { _ = try game.wallet.earn(1, Currency($0), for: "test") }),
      (.claim, { _ = try game.wallet.claim(1, gems, key: $0, for: "test") }),
      (.reason, { _ = try game.wallet.earn(1, gems, for: $0) }),
      (NameRule("a profile's name", maximumBytes: 200), { _ = try GameData.open("com.example.space", profile: $0) }),
      (NameRule("a game's identifier", maximumBytes: 200), { _ = try GameData.open($0) }),
    ]
    for (rule, use) in uses {
      let tooLong = String(repeating: "x", count: rule.maximumBytes + 1)
      for name in rule.allows("") ? [tooLong] : ["", tooLong] {
        let error = #expect(throws: GameDataError.self, "\(rule.kind)") { try use(name) }
        #expect(error?.code == .misuse && error?.message == rule.objection(to: name), "\(rule.kind)")
      }
    }
  }
}
