import Foundation
import Keepsake
import KeepsakeStore
import TestSupport
import Testing

/// Two players with profiles on one console: each has saves of their own, and deleting one profile never affects
/// another.
@Suite struct ProfileTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private var base: URL { folder.url.appendingPathComponent("com.example.space", isDirectory: true) }

  private func open(_ profile: String) throws -> GameData {
    try GameData.open("com.example.space", profile: profile, at: base.appendingPathComponent(profile))
  }

  @Test("profiles are listed by name, open or not; other folders and files aren't listed")
  func lists() throws {
    #expect(try GameData.profiles(in: base) == [])
    for name in ["default", "Ben", "Ada Ä"] {
      let game = try open(name)
      try game.saves.capture(World(level: name.count), to: .main).wait()
      try game.close()
    }
    let game = try open("Cleo")
    defer { end(game) }
    try FileManager.default.createDirectory(
      at: base.appendingPathComponent("screenshots"), withIntermediateDirectories: true)
    try Data().write(to: base.appendingPathComponent("notes"))
    try FileManager.default.copyItem(at: base.appendingPathComponent("Ben"), to: base.appendingPathComponent(".Ben"))
    #expect(try GameData.profiles(in: base) == ["Ada Ä", "Ben", "Cleo", "default"])
  }

  @Test("a deleted profile is gone with all of its data; an open one can't be deleted, and others are unchanged")
  func deletes() throws {
    for name in ["Ada", "Ben"] {
      let game = try open(name)
      try game.saves.capture(World(level: 6), to: .main).wait()
      try game.close()
    }
    let game = try open("Ada")
    #expect(storeErrorCode { try GameData.deleteProfile("Ada", in: base) } == .inUse)
    try game.saves.capture(World(level: 7), to: .main).wait()
    try game.close()
    // What a crash during another deletion has left.
    let leftover = base.appendingPathComponent(StoreRemoval.prefix + "x")
    try FileManager.default.copyItem(at: base.appendingPathComponent("Ben"), to: leftover)
    #expect(try GameData.profiles(in: base) == ["Ada", "Ben"])

    try GameData.deleteProfile("Ada", in: base)
    #expect(try FileManager.default.contentsOfDirectory(atPath: base.path) == ["Ben"])
    #expect(storeErrorCode { try GameData.deleteProfile("Ada", in: base) } == .missing)
    let again = try open("Ada")
    #expect(try again.saves.load(.main) == nil)
    try again.close()
    let ben = try open("Ben")
    #expect(try ben.saves.load(.main)?.level == 6)
    try ben.close()
  }

  @Test("a profile name that could lead elsewhere is refused, and nothing is deleted")
  func names() throws {
    try open("Ada").close()
    let names = [
      "", ".", "..", "../com.example.space/Ada", "Ada/", "./Ada", "Ada/../Ada", "a\u{0}b", "con", "NUL.txt", "con .txt",
      "lpt1", "com\u{B9}",
    ]
    for name in names {
      #expect(gameErrorCode { try GameData.deleteProfile(name, in: base) } == .misuse, "\(name)")
      #expect(gameErrorCode { _ = try GameData.open("com.example.space", profile: name) } == .misuse, "\(name)")
      #expect(gameErrorCode { _ = try GameData.profiles(of: name) } == .misuse, "\(name)")
    }
    #expect(try GameData.profiles(in: base) == ["Ada"])
    #expect(storeErrorCode { try GameData.deleteProfile("console", in: base) } == .missing)
  }
}
