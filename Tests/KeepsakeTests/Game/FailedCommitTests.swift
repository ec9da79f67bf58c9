import Foundation
import KeepsakeStore
import TestSupport
import Testing

@testable import Keepsake

/// Saves that follow a commit that failed.
@Suite struct FailedCommitTests {
  enum Failure: CaseIterable {
    /// The whole transaction fails, when all of it is written: the game's files are gone for a moment.
    case disk
    /// Only the commit fails: its purchase can't be paid for.
    case purchase
  }

  let device: Device
  private let slot = Slot<Journal>("journal", resolving: .mostProgress)

  init() throws { device = try Device() }

  /// Saves, in a commit that fails.
  private func fail(_ failure: Failure, saving text: String, in game: GameData) throws {
    switch failure {
    case .disk:
      let aside = device.folder.url.appendingPathComponent("aside")
      try FileManager.default.moveItem(at: device.url, to: aside)
      #expect(storeErrorCode { try game.saves.capture(Journal(text: text), to: slot).wait() } == .removed)
      try FileManager.default.moveItem(at: aside, to: device.url)
    case .purchase:
      let pending = try game.checkpoint { checkpoint in
        try checkpoint.save(Journal(text: text), to: slot)
        try checkpoint.spend(5, .gems, for: "sword")
      }
      #expect(gameErrorCode { try pending.wait() } == .insufficient(0, of: 0))
    }
  }

  /// Checks that the slot has a single head with this text. Loads nothing: the next save has to replace what this run
  /// saved, not what was loaded.
  private func check(_ text: String, in game: GameData, _ when: Comment) throws {
    let heads = try game.core.store.read { try $0.heads(of: slot.name) }
    #expect(heads.count == 1, when)
    #expect(try game.saves.conflict(slot) == nil, when)
    let newest = try #require(heads.first)
    #expect(try game.saves.value(of: newest, in: slot).text == text, when)
  }

  @Test(
    "a save after failed ones replaces the newest that was kept: there is one head and no conflict",
    arguments: Failure.allCases)
  func nextSave(failure: Failure) throws {
    var game = try device.open()
    try game.saves.capture(Journal(text: "first"), to: slot).wait()
    for number in 1...2 {
      try fail(failure, saving: "lost \(number)", in: game)
      try check("first", in: game, "failed \(number)")
    }
    try game.saves.capture(Journal(text: "second"), to: slot).wait()
    try check("second", in: game, "saved again")
    try fail(failure, saving: "lost 3", in: game)
    try game.close()
    game = try device.open()
    defer { end(game) }
    try check("second", in: game, "reopened")
    #expect(try game.saves.load(slot)?.text == "second")
    try game.saves.capture(Journal(text: "third"), to: slot).wait()
    try check("third", in: game, "saved after reopening")
  }
}
