import Foundation
import Testing

@testable import Keepsake

/// Types of an earlier release.
private enum Earlier {
  struct Options: Codable, Equatable {
    var volume = 0.5
    var keys: [String: Int] = [:]
  }
  struct Draft: Codable { var text = "" }
}

/// Another type than `Options`, which reads nothing that it needs.
private struct Profile: Codable, Equatable { var nickname: String? }

private struct SoundOptions: Codable, Equatable, FormerlyNamed {
  static var archiveFormerNames: [String] { ["Options"] }
  var volume = 0.0
}

/// `Options` after it became archivable.
@Archivable(name: "Options") private struct MergedOptions: Codable, Equatable { @Merge(.max) var volume = 0.0 }

/// `Options` after it became archivable under another name, by hand.
private struct HandWritten: Archivable, Codable {
  static var archiveFormerNames: [String] { ["Options"] }
  var volume = 0.0
  init() {}
  func encode(to writer: inout ArchiveWriter) throws { try writer.encode(volume, forKey: "volume") }
  init(from reader: inout ArchiveReader) throws {
    volume = try reader.decode(Double.self, forKey: "volume", default: 0)
  }
}

/// `Draft` after it became archivable and stopped being `Codable`.
@Archivable(name: "Draft") private struct NewDraft { var title = "" }

@Archivable private struct Both: Codable, Equatable { var level = 1 }

extension Slot<Earlier.Options> {
  fileprivate static let options = Slot("options")
  fileprivate static let asked = Slot("options", resolving: .ask)
}

/// Slots whose type is only `Codable`.
@Suite struct CodableSlotTests {
  private let slot = Slot<Earlier.Options>.options
  let device: Device

  init() throws { device = try Device() }

  private func expectMismatch(
    _ text: String, _ location: Testing.SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) {
    let error = #expect(throws: ArchiveError.self, sourceLocation: location, performing: body)
    #expect(error?.code == .mismatch, sourceLocation: location)
    #expect(error?.message.contains(text) == true, "\(error?.message ?? "")", sourceLocation: location)
  }

  @Test("a Codable value is saved, loaded, listed, restored, exported and imported as an archivable one is")
  func works() async throws {
    var game = try device.open()
    let value = Earlier.Options(volume: 0.25, keys: ["jump": 3, "left": 1])
    let first = try await game.saves.save(value, to: .options)
    #expect(try game.saves.capture(value, to: .options).wait().id == first.id, "unchanged, so nothing is written")
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(.options) == value)
    let autosave = Autosave(game, to: .options, atSignals: .ignored) { Earlier.Options(volume: 1) }
    try autosave.saveNow()
    #expect(try game.saves.load(.options) == Earlier.Options(volume: 1))
    try await game.checkpoint { try $0.save(Earlier.Options(volume: 0.75), to: .options) }.value
    #expect(try game.saves.load(.options)?.volume == 0.75)
    #expect(try game.saves.value(of: first.id, in: .options) == value)
    try game.saves.restore(first.id, in: .options)
    let file = try game.saves.export(.options)
    try game.saves.import(file, to: Slot<Earlier.Options>("copy"))
    #expect(try game.saves.load(Slot<Earlier.Options>("copy")) == value)
    #expect(try game.saves.list().map(\.name) == ["copy", "options"])
  }

  @Test("two Codable types under one slot name are told apart by their names, and neither replaces the other's save")
  func types() throws {
    let game = try device.open()
    defer { end(game) }
    let other = Slot<Profile>("options")
    try game.saves.capture(Earlier.Options(volume: 1), to: .options).wait()
    let text = """
      A save of the type Options can't be read from the slot "options" as Profile: The archive contains Options, and \
      Profile was asked for: if that is the same type under a new name, declare its old name with FormerlyNamed
      """
    expectMismatch(text) { _ = try game.saves.load(other) }
    try game.saves.capture(Profile(nickname: "Ada"), to: other, SaveMetadata(progress: 9)).wait()
    #expect(try game.saves.load(other)?.nickname == "Ada")
    let conflict = try #require(try game.saves.conflict(.options))
    #expect(conflict.sides.map(\.value) == [Earlier.Options(volume: 1)] && conflict.unreadable.count == 1)
    let file = try game.saves.export(other)
    expectMismatch("A save of the type Profile can't be read") { try game.saves.import(file, to: .options) }
    // Nor is an archivable type read as a Codable one.
    expectMismatch("as World") { _ = try game.saves.load(Slot<World>("options")) }
    try game.saves.capture(World(level: 3), to: .main).wait()
    expectMismatch("A save of the type World") { _ = try game.saves.load(Slot<Profile>("main")) }
  }

  @Test("a Codable value that is saved where another type's save was never loaded is kept beside it")
  func neverLoaded() throws {
    var game = try device.open()
    try game.saves.capture(Earlier.Options(volume: 1), to: .options).wait()
    try game.close()
    game = try device.open()
    try game.saves.capture(Profile(nickname: "Ada"), to: Slot("options")).wait()
    #expect(try game.core.store.read { try $0.heads(of: "options") }.count == 2)
    try game.close()
    game = try device.open()
    defer { end(game) }
    try game.saves.capture(Earlier.Options(volume: 0.5), to: .options).wait()
    #expect(try game.core.store.read { try $0.heads(of: "options") }.count == 2, "only the options are replaced")
  }

  @Test("a renamed Codable type reads its older saves if it declares its former name")
  func renamed() throws {
    let game = try device.open()
    defer { end(game) }
    try game.saves.capture(Earlier.Options(volume: 0.25), to: .options).wait()
    let file = try game.saves.export(.options)
    let renamed = Slot<SoundOptions>("options")
    #expect(try game.saves.load(renamed) == SoundOptions(volume: 0.25))
    try game.saves.import(file, to: renamed)
    try game.saves.capture(SoundOptions(volume: 1), to: renamed).wait()
    #expect(try game.saves.load(renamed) == SoundOptions(volume: 1))
    expectMismatch("A save of the type SoundOptions") { _ = try game.saves.load(.options) }
  }

  @Test("a type that became archivable and is still Codable reads its older saves; without Codable, the error says so")
  func archivable() throws {
    let game = try device.open()
    defer { end(game) }
    try game.saves.capture(Earlier.Options(volume: 0.25), to: .options).wait()
    let file = try game.saves.export(.options)
    #expect(try game.saves.load(Slot<HandWritten>("options"))?.volume == 0.25)
    let later = Slot<MergedOptions>("options")
    #expect(try game.saves.load(later) == MergedOptions(volume: 0.25))
    try game.saves.import(file, to: later)
    try game.saves.capture(MergedOptions(volume: 1), to: later).wait()
    #expect(try game.saves.load(later) == MergedOptions(volume: 1))
    expectMismatch("now it is only Codable") { _ = try game.saves.load(.options) }

    try game.saves.capture(Earlier.Draft(text: "x"), to: Slot("draft")).wait()
    expectMismatch("Draft must be Codable, too") { _ = try game.saves.load(Slot<NewDraft>("draft")) }
  }

  @Test("in a conflict a Codable slot takes the save with the most progress, asks, or combines, as its policy says")
  func conflicts() throws {
    var game = try device.open()
    try game.saves.capture(Earlier.Options(volume: 0.25), to: .options, SaveMetadata(progress: 5)).wait()
    try game.close()
    game = try device.open()
    defer { end(game) }
    // A failed load lets the next save replace nothing.
    #expect(throws: ArchiveError.self) { try game.saves.load(Slot<Profile>("options")) }
    try game.saves.capture(Earlier.Options(volume: 1), to: .options).wait()
    #expect(try game.saves.load(.options)?.volume == 0.25)
    let combined = Slot<Earlier.Options>(
      "options", resolving: .combining { Earlier.Options(volume: $0.values.map(\.volume).reduce(0, +)) })
    #expect(try game.saves.load(combined)?.volume == 1.25)
    let conflict = try #require(try game.saves.conflict(.asked))
    #expect(conflict.sides.map(\.value.volume) == [0.25, 1])
    try game.saves.resolve(conflict, with: conflict.sides[1].value).wait()
    #expect(try game.saves.conflict(.asked) == nil && game.saves.load(.options)?.volume == 1)
  }

  @Test("a type that is archivable and Codable is saved as archivable, also by generic code that knows only Codable")
  func generic() throws {
    let game = try device.open()
    defer { end(game) }
    func capture<Value: Codable>(_ value: Value, in name: String) throws {
      try game.saves.capture(value, to: Slot<Value>(name)).wait()
    }
    try capture(Both(level: 3), in: "one")
    try game.saves.capture(Both(level: 3), to: Slot("two")).wait()
    #expect(try game.saves.load(Slot<Both>("one")) == Both(level: 3))
    let contents = try game.core.store.read { transaction in
      try ["one", "two"].map { try transaction.heads(of: $0).compactMap(transaction.version).map(\.record.contents) }
    }
    #expect(contents[0] == contents[1])
  }
}
