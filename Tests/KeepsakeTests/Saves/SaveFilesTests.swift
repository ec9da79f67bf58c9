import Foundation
import Keepsake
import KeepsakeStore
import TestSupport
import Testing

/// A save as a file: sent to support, kept on a memory stick, moved to a machine that has no cloud.
@Suite struct SaveFilesTests {
  static let secret = Data((0..<32).map { UInt8(90 - $0) })
  let device: Device

  init() throws { device = try Device() }

  private func open(_ device: Device, _ seal: Seal = .none, id: String = "com.example.space") throws -> GameData {
    // As in `Device.open`, the folder exists as long as the game.
    var environment = device.clock.environment
    let now = environment.nowMilliseconds
    environment.nowMilliseconds = { [folder = device.folder] in withExtendedLifetime(folder) { now() } }
    return try GameData.open(id, at: device.url, seal: seal, environment: environment)
  }

  @Test("a save is imported on another machine and slot with its metadata, and what it replaced can be restored")
  func moves() throws {
    let game = try open(device)
    defer { end(game) }
    let picture = SaveMetadata(
      title: "Cave", playtime: 60, progress: 2, thumbnail: Data([1, 2, 3]), custom: ["mode": "hard"])
    let saved = try game.saves.capture(World(level: 7), to: .main, picture).wait()
    let url = device.folder.url.appendingPathComponent("cave.save")
    try game.saves.export(.main, to: url)

    let other = try open(Device())
    defer { end(other) }
    let before = try other.saves.capture(World(level: 2), to: Slot("third"), SaveMetadata(title: "mine")).wait()
    let imported = try other.saves.import(from: url, to: Slot<World>("third"))
    #expect(imported.metadata == picture && imported.id != saved.id && imported.slot == "third")
    #expect(try other.saves.load(Slot<World>("third"))?.level == 7)
    #expect(try other.saves.list().map(\.isConflicted) == [false])
    // Importing it again changes nothing.
    #expect(try other.saves.import(from: url, to: Slot<World>("third")).id == imported.id)
    try other.saves.restore(before.id, in: Slot<World>("third"))
    #expect(try other.saves.load(Slot<World>("third"))?.level == 2)
    #expect(try other.saves.list().first?.current.metadata.title == "mine")
  }

  @Test("an old version can be exported, an empty slot can't, and a capture made just before is in the file")
  func versions() throws {
    let game = try open(device)
    defer { end(game) }
    #expect(gameErrorCode { _ = try game.saves.export(.main) } == .missing)
    let first = try game.saves.capture(World(level: 1), to: .main).wait()
    for level in 2...30 { try game.saves.capture(World(level: level), to: .main) }
    func level(_ file: Data) throws -> Int? {
      try game.saves.import(file, to: Slot<World>("check"))
      return try game.saves.load(Slot<World>("check"))?.level
    }
    #expect(try level(game.saves.export(.main)) == 30)
    let kept = try #require(try game.saves.history(of: .main).last)
    #expect(try level(game.saves.export(.main, version: kept.id)) == game.saves.value(of: kept.id, in: .main).level)
    #expect(gameErrorCode { _ = try game.saves.export(Slot<World>("elsewhere"), version: kept.id) } == .missing)
    try game.saves.delete(.main)
    #expect(gameErrorCode { _ = try game.saves.export(.main) } == .missing)
    #expect(try game.saves.history(of: .main).contains { $0.id == first.id } == false)
  }

  @Test("a file of another type, a newer game's, plain text and a damaged file are refused, and change nothing")
  func refused() throws {
    let game = try open(device)
    defer { end(game) }
    let stands = try game.saves.capture(World(level: 5), to: .main).wait()
    try game.saves.capture(Newer(), to: Slot<Newer>("newer")).wait()
    let newer = try game.saves.export(Slot<Newer>("newer"))
    #expect {
      try game.saves.import(newer, to: .main)
    } throws: { $0 is ArchiveError }
    #expect {
      try game.saves.import(newer, to: Slot<Older>("older"))
    } throws: { ($0 as? ArchiveError)?.code == .tooNew }
    #expect(storeErrorCode { try game.saves.import(Data("once upon a time".utf8), to: .main) } == .misuse)
    #expect(storeErrorCode { try game.saves.import(try Archive.encode(World()), to: .main) } == .misuse)
    var damaged = try game.saves.export(.main)
    damaged[damaged.count / 2] ^= 1
    #expect(storeErrorCode { try game.saves.import(damaged, to: .main) } == .damaged)
    #expect(
      storeErrorCode { try game.saves.import(from: device.url.appendingPathComponent("none"), to: .main) } == .missing)
    #expect(gameErrorCode { try game.saves.import(game.saves.export(.main), to: Slot<World>("")) } == .misuse)
    #expect(try game.saves.history(of: .main).map(\.id) == [stands.id])
    #expect(try game.saves.list().map(\.name) == ["main", "newer"])
  }

  @Test(
    "a sealed file can be imported only by the same game with the same secret, an unsealed one only on request",
    arguments: [Seal.signed(secret), .sealed(secret, player: "ada")])
  func sealed(seal: Seal) throws {
    let game = try open(device, seal)
    defer { end(game) }
    try game.saves.capture(World(level: 7), to: .main).wait()
    let file = try game.saves.export(.main)
    let open = try game.saves.export(.main, sealed: false)

    let other = try self.open(Device(), seal)
    defer { end(other) }
    try other.saves.import(file, to: .main)
    #expect(try other.saves.load(.main)?.level == 7)
    #expect(storeErrorCode { try other.saves.import(open, to: .main) } == .otherSeal)
    try other.saves.import(open, to: Slot<World>("second"), adoptsUnsealed: true)
    #expect(try other.saves.load(Slot<World>("second"))?.level == 7)

    let stranger = try self.open(Device(), .signed(Data(count: 32)))
    defer { end(stranger) }
    #expect(storeErrorCode { try stranger.saves.import(file, to: .main) } == .wrongSecret)
    let sequel = try self.open(Device(), seal, id: "com.example.sequel")
    defer { end(sequel) }
    #expect(storeErrorCode { try sequel.saves.import(file, to: .main) } == .wrongSecret)
    let plain = try self.open(Device())
    defer { end(plain) }
    #expect(storeErrorCode { try plain.saves.import(file, to: .main) } == .otherSeal)
    try plain.saves.import(open, to: .main)
    #expect(try plain.saves.load(.main)?.level == 7)
  }

  @Test("a save of several megabytes, stored in segments, is the same after an export and an import")
  func large() throws {
    let game = try open(device)
    defer { end(game) }
    var seed: UInt64 = 11
    let text = String(
      (0..<6_000_000).map { _ in
        seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Character(UnicodeScalar(UInt8(97 + seed >> 33 % 26)))
      })
    try game.saves.capture(Journal(text: text), to: .byProgress).wait()
    let file = try game.saves.export(.byProgress)
    try game.saves.import(file, to: Slot<Journal>("copy"))
    let isSame = try game.saves.load(Slot<Journal>("copy"))?.text == text
    #expect(isSame)
  }
}
