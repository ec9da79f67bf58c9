import Foundation
import KeepsakeTesting
import Observation
import TestSupport
import Testing

@testable import Keepsake

/// What views are shown, as they learn of it: by Observation alone.
@MainActor
@Suite("Observed by views", .hangLimit) struct ObservedTests {
  let cloud = MemoryCloud()

  /// Waits until something is so that a view reads. Looks again only when Observation tells of a change.
  private func seen(_ isTrue: @MainActor () -> Bool) async {
    while true {
      let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
      if withObservationTracking(isTrue, onChange: { continuation.yield() }) { return }
      for await _ in changes { break }
    }
  }

  @Test("a slot shows what is saved, how far it has come, and a delete")
  func slot() async throws {
    let game = try Device().open()
    defer { end(game) }
    let slot = game.saves.observed(.main)
    await seen { slot.status?.state == .empty }
    #expect(slot.name == "main" && slot.summary == nil && !slot.isConflicted)
    try await game.saves.save(World(level: 3), to: .main, SaveMetadata(title: "Cave"))
    await seen { slot.summary?.current.metadata.title == "Cave" }
    await seen { slot.status?.state == .local(.neverConnected) }
    // Another slot is none of its business, whatever its name looks like.
    try await game.saves.save(World(level: 1), to: Slot("mai*"))
    game.cloud.connect(cloud.address)
    await seen { slot.status?.state == .stored }
    #expect(slot.summary?.name == "main")
    try game.saves.delete(.main)
    await seen { slot.summary == nil }
    #expect(slot.error == nil)
  }

  @Test("a slot shows a conflict of two devices, and that it is resolved")
  func conflict() async throws {
    let asking = Slot<World>("main", resolving: .ask)
    let (here, there) = (try Device().open(), try Device().open())
    defer {
      end(here)
      end(there)
    }
    let slot = here.saves.observed(asking)
    for (game, level) in [(here, 3), (there, 5)] {
      try await game.saves.save(World(level: level), to: asking)
      game.cloud.connect(cloud.address)
      try await game.cloud.sync()
    }
    try await here.cloud.sync()
    try here.cloud.deliver()
    await seen { slot.isConflicted }
    let conflict = try #require(try here.saves.conflict(asking))
    try here.saves.resolve(conflict, with: World(level: 5)).wait()
    await seen { !slot.isConflicted && slot.summary != nil }
  }

  @Test("the list of saves has what is added, changed and deleted, sorted")
  func list() async throws {
    let game = try Device().open()
    defer { end(game) }
    try await game.saves.save(World(level: 1), to: Slot("level-2"))
    let saves = try game.saves.observed(matching: "level-*")
    await seen { saves.slots.map(\.name) == ["level-2"] }
    try await game.saves.save(World(level: 1), to: Slot("level-1"))
    try await game.saves.save(World(level: 1), to: Slot("other"))
    await seen { saves.slots.map(\.name) == ["level-1", "level-2"] }
    try await game.saves.save(World(level: 9), to: Slot("level-2"), SaveMetadata(title: "Nine"))
    await seen { saves.slots.map(\.current.metadata.title) == [nil, "Nine"] }
    try game.saves.delete("level-1")
    await seen { saves.slots.map(\.name) == ["level-2"] }
    #expect(throws: GameDataError.self) { try game.saves.observed(matching: "[") }
  }

  @Test("the cloud's status is shown from the first moment on, and follows")
  func cloudStatus() async throws {
    let game = try Device().open()
    defer { end(game) }
    let shown = game.cloud.observed()
    #expect(shown.status.phase == .off)
    try await game.saves.save(World(level: 3), to: .main)
    game.cloud.connect(cloud.address)
    await seen { shown.status.lastFetched != nil && shown.status.waitingCommits == 0 }
    game.cloud.isEnabled = false
    await seen { shown.status.phase == .paused }
  }

  @Test("an observed object ends with its last reference, also while it waits for changes")
  func ends() async throws {
    let game = try Device().open()
    defer { end(game) }
    weak var forgotten: ObservedSlot?
    do {
      let slot = game.saves.observed(.main)
      await seen { slot.status != nil }
      forgotten = slot
    }
    #expect(forgotten == nil)
    // Those of a closed game stay as they are.
    let slot = game.saves.observed(.main)
    try await game.saves.save(World(level: 3), to: .main)
    await seen { slot.summary != nil }
    try game.close()
    #expect(slot.summary != nil && slot.error == nil)
  }

  /// Lets nothing else run on the main actor for a moment: what was just yielded waits for it.
  private func occupyMainActor() { Thread.sleep(forTimeInterval: 0.2) }

  @Test("a change that waits for the main actor doesn't keep an observed object")
  func waits() async {
    final class Owner: Sendable {}
    let following = Following()
    let (numbers, continuation) = AsyncStream.makeStream(of: Int.self)
    let (shown, showing) = AsyncStream.makeStream(of: Int.self)
    weak var forgotten: Owner?
    do {
      let owner = Owner()
      forgotten = owner
      following.begin(numbers, for: owner, show: { showing.yield($1) }, failed: { _, _ in })
      continuation.yield(1)
      for await number in shown {
        #expect(number == 1)
        break
      }
      continuation.yield(2)
      occupyMainActor()
    }
    #expect(forgotten == nil)
  }

  @Test("a name that no slot can have is told as an error")
  func invalid() async throws {
    let game = try Device().open()
    defer { end(game) }
    let slot = game.saves.observed(Slot<World>(""))
    await seen { slot.error != nil }
    #expect((slot.error as? GameDataError)?.code == .misuse)
  }
}
