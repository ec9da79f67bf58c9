import Foundation
import KeepsakeReplication
import Testing

@testable import Keepsake

/// Another type than `World`, under the same slot name. All of its fields have defaults.
@Archivable private struct SoundOptions: Equatable { var volume = 0.5 }

/// `SoundOptions` in a later program.
@Archivable private struct RenamedOptions: Equatable {
  static var archiveFormerNames: [String] { ["SoundOptions"] }
  var volume = 0.5
}

/// `World` with a field of another type, as a program that shares nothing but the name would have it.
@Archivable(name: "World") private struct WorldOfTexts { var level = "one" }

/// Two types under one slot name: a mistake in the game, which must not cost the player a save.
@Suite struct SlotTypeTests {
  private let options = Slot<SoundOptions>("main")
  let device: Device

  init() throws { device = try Device() }

  private static let policies: [String: ConflictPolicy<SoundOptions>] = [
    "automatic": .automatic, "mostProgress": .mostProgress, "longestPlayed": .longestPlayed, "newest": .newest,
    "ask": .ask, "combining": .combining { _ in SoundOptions(volume: -1) },
  ]

  /// What an error says about a save that the slot has now, and doesn't say about any other.
  private static let advice =
    "pass replacingUnreadable: true to saves.resolve(_:with:_:replacingUnreadable:), with what saves.conflict(_:)"

  private func heads(_ game: GameData) throws -> Int { try game.core.store.read { try $0.heads(of: "main") }.count }

  /// Checks that an error names the slot, the type that is stored and the type that was asked for.
  private func expectMismatch(
    _ stored: String, _ wanted: String, _ location: Testing.SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) {
    let error = #expect(throws: ArchiveError.self, sourceLocation: location, performing: body)
    #expect(error?.code == .mismatch, sourceLocation: location)
    let names = "A save of the type \(stored) can't be read from the slot \"main\" as \(wanted): "
    #expect(error?.message.hasPrefix(names) == true, "\(error?.message ?? "")", sourceLocation: location)
  }

  @Test(
    "loading a slot as another type throws an error with the slot and both types, and the next save replaces nothing")
  func load() throws {
    let game = try device.open()
    defer { end(game) }
    let saved = try game.saves.capture(World(level: 12), to: .main).wait()
    expectMismatch("World", "SoundOptions") { _ = try game.saves.load(options) }
    expectMismatch("World", "SoundOptions") { _ = try game.saves.value(of: saved.id, in: options) }
    try game.saves.capture(SoundOptions(), to: options, SaveMetadata(progress: 9)).wait()
    #expect(try heads(game) == 2)
    #expect(try game.saves.load(.main)?.level == 12, "the world is still there, and isn't merged with the options")
    #expect(try game.saves.load(options) == SoundOptions())
  }

  @Test(
    "what is saved after a mismatch is loaded from then on, with each policy, and starts of the game add no versions",
    arguments: policies.keys.sorted())
  func loadsBeside(policy: String) throws {
    let slot = Slot<SoundOptions>("main", resolving: try #require(Self.policies[policy]))
    var game = try device.open()
    // It ranks first by every figure.
    let long = SaveMetadata(playtime: 9, progress: 9)
    let world = try game.saves.capture(World(level: 12), to: .main, long).wait()
    expectMismatch("World", "SoundOptions") { _ = try game.saves.load(slot) }
    try game.saves.capture(SoundOptions(volume: 0), to: slot).wait()
    for start in 1...3 {
      #expect(try game.saves.load(slot)?.volume == Double(start - 1))
      try game.saves.capture(SoundOptions(volume: Double(start)), to: slot).wait()
      #expect(try heads(game) == 2)
      try game.close()
      game = try device.open()
    }
    defer { end(game) }
    for _ in 0..<2 { #expect(try game.saves.load(slot)?.volume == 3) }
    let incident = try #require(game.incidents.first)
    #expect(game.incidents.count == 1 && incident.kind == .unreadable && incident.slot == "main")
    #expect(incident.version == world.id && incident.message.contains("was loaded without it"), "\(incident)")
    let conflict = try #require(try game.saves.conflict(slot))
    #expect(conflict.sides.map(\.value.volume) == [3] && conflict.unreadable.map(\.version.id) == [world.id])
    #expect(try game.saves.load(.main)?.level == 12)
  }

  @Test("the error for the save that a slot has says how to give it up; one for an earlier version or a file doesn't")
  func advice() throws {
    let game = try device.open()
    defer { end(game) }
    let saved = try game.saves.capture(World(level: 12), to: .main).wait()
    let file = try game.saves.export(.main)
    func message(_ body: () throws -> Void) -> String {
      #expect(throws: ArchiveError.self, performing: body)?.message ?? ""
    }
    #expect(message { _ = try game.saves.load(options) }.contains(Self.advice))
    #expect(!message { _ = try game.saves.value(of: saved.id, in: options) }.contains(Self.advice))
    #expect(!message { try game.saves.import(file, to: Slot<SoundOptions>("copy")) }.contains(Self.advice))
    // As it says:
    try game.saves.capture(SoundOptions(volume: 1), to: options).wait()
    let conflict = try #require(try game.saves.conflict(options))
    try game.saves.resolve(conflict, with: SoundOptions(volume: 1), replacingUnreadable: true).wait()
    #expect(try heads(game) == 1 && game.saves.load(options)?.volume == 1)
  }

  @Test("a save in a slot that was never loaded is kept beside a save of another type, and an incident names both")
  func neverLoaded() throws {
    var game = try device.open()
    let world = try game.saves.capture(World(level: 12), to: .main).wait()
    try game.close()
    game = try device.open()
    let first = try game.saves.capture(SoundOptions(volume: 1), to: options).wait()
    let incident = try #require(game.incidents.first)
    #expect(game.incidents.count == 1 && incident.kind == .unreadable && incident.slot == "main")
    #expect(incident.version == world.id)
    #expect(incident.message.contains("the type World can't be read from the slot \"main\" as SoundOptions: "))
    #expect(incident.message.contains(Self.advice))
    #expect(try heads(game) == 2)
    #expect(try game.saves.value(of: world.id, in: .main).level == 12)
    // Later saves replace the first, and don't make more heads.
    try game.saves.capture(SoundOptions(volume: 0), to: options).wait()
    #expect(try heads(game) == 2 && game.incidents.count == 1)
    #expect(try game.saves.history(of: options).map(\.id).contains(first.id))
    try game.close()
    // Without loading, each type replaces its own.
    game = try device.open()
    try game.saves.capture(World(level: 13), to: .main).wait()
    #expect(try heads(game) == 2)
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(.main)?.level == 13)
    #expect(try game.saves.load(options)?.volume == 0, "the newest save is a world, which can't be read as options")
  }

  @Test("a save in a slot that was never loaded replaces a save of the same type, or of one that was renamed")
  func neverLoadedRenamed() throws {
    let slot = Slot<RenamedOptions>("main")
    var game = try device.open()
    try game.saves.capture(SoundOptions(volume: 1), to: options).wait()
    try game.close()
    for volume in [0.25, 0.75] {
      game = try device.open()
      try game.saves.capture(RenamedOptions(volume: volume), to: slot).wait()
      #expect(try heads(game) == 1 && game.incidents.isEmpty)
      try game.close()
    }
  }

  @Test("the error for a field that has another type names the slot and the types, too")
  func field() throws {
    let game = try device.open()
    defer { end(game) }
    try game.saves.capture(World(level: 12), to: .main).wait()
    let slot = Slot<WorldOfTexts>("main")
    expectMismatch("World", "World") { _ = try game.saves.load(slot) }
    let error = #expect(throws: ArchiveError.self) { try game.saves.load(slot) }
    #expect(error?.field == "level")
  }

  @Test("a file of another type isn't imported, nor any file into a slot with a save of another type")
  func imports() throws {
    let game = try device.open()
    defer { end(game) }
    let saved = try game.saves.capture(World(level: 12), to: .main).wait()
    let other = Slot<SoundOptions>("options")
    try game.saves.capture(SoundOptions(volume: 1), to: other).wait()
    let file = try game.saves.export(other)
    expectMismatch("SoundOptions", "World") { try game.saves.import(file, to: .main) }
    expectMismatch("World", "SoundOptions") { try game.saves.import(file, to: options) }
    #expect(try game.saves.history(of: .main).map(\.id) == [saved.id])
    try game.saves.import(file, to: Slot<SoundOptions>("copy"))
    #expect(try game.saves.load(Slot<SoundOptions>("copy")) == SoundOptions(volume: 1))
    // Once the world is deleted, the slot is free.
    try game.saves.delete(.main)
    try game.saves.import(file, to: options)
    #expect(try game.saves.load(options) == SoundOptions(volume: 1))
  }

  @Test("a conflict with a save of another type leaves that save, and ends if resolving replaces it")
  func resolving() async throws {
    let game = try device.open()
    defer { end(game) }
    let world = try game.saves.capture(World(level: 12), to: .main).wait()
    #expect(throws: ArchiveError.self) { try game.saves.load(options) }
    let foreign = try game.saves.capture(SoundOptions(), to: options).wait()
    var conflict = try #require(try game.saves.conflict(.main))
    #expect(conflict.sides.map(\.version.id) == [world.id] && conflict.unreadable.map(\.version.id) == [foreign.id])
    expectMismatch("SoundOptions", "World") { throw try #require(conflict.unreadable.first).error }
    try game.saves.resolve(conflict, with: World(level: 13)).wait()
    conflict = try #require(try game.saves.conflict(.main))
    #expect(conflict.sides.map(\.value.level) == [13] && conflict.unreadable.count == 1)
    try await game.saves.resolve(conflict, with: World(level: 14), replacingUnreadable: true)
    #expect(try game.saves.conflict(.main) == nil && heads(game) == 1)
    #expect(try game.saves.load(.main)?.level == 14)
    #expect(try game.saves.value(of: foreign.id, in: options) == SoundOptions(), "it stays in the history")
  }

  @Test("a conflict in which no save is of the slot's type ends after a save, if resolving replaces the others")
  func onlyOtherTypes() throws {
    let game = try device.open()
    defer { end(game) }
    try game.saves.capture(SoundOptions(), to: options).wait()
    #expect(throws: ArchiveError.self) { try game.saves.load(.main) }
    try game.saves.capture(SoundOptions(volume: 1), to: options).wait()
    expectMismatch("SoundOptions", "World") { _ = try game.saves.load(.main) }
    expectMismatch("SoundOptions", "World") { _ = try game.saves.conflict(.main) }
    try game.saves.capture(World(level: 2), to: .main).wait()
    let conflict = try #require(try game.saves.conflict(.main))
    #expect(conflict.sides.map(\.value.level) == [2] && conflict.unreadable.count == 2)
    try game.saves.resolve(conflict, with: World(level: 2), replacingUnreadable: true).wait()
    #expect(try heads(game) == 1 && game.saves.load(.main)?.level == 2)
  }
}
