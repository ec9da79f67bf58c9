import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// Ways in which a slot that is or was local could lose its saves or give them away.
@Suite(.hangLimit) struct LocalDetoursTests: AtHome {
  let home: Household

  init() throws { home = try Household() }

  private let secret = Slot<World>("secret")

  @Test("a save that was never sent is sent when its slot syncs again, even if nothing was saved meanwhile")
  func comesBackUnsent() async throws {
    let (here, there) = (try phone.open(), try await connected(tablet))
    defer {
      end(here)
      end(there)
    }
    try await here.saves.save(World(level: 2), to: .main)
    try here.saves.keepLocal(.main, cloudCopy: .kept)
    try here.saves.syncAgain(.main)
    here.cloud.connect(cloud.address)
    try await here.cloud.sync()
    #expect(try here.saves.status(of: .main).state == .stored)
    try await there.cloud.sync()
    #expect(try there.saves.load(.main)?.level == 2)
    #expect(cloud.container.heads(of: "main").count == 1)
  }

  @Test("a local slot can't be copied or renamed to one that isn't local")
  func noDetour() async throws {
    let game = try await connected(phone)
    defer { end(game) }
    try game.saves.keepLocal(secret, cloudCopy: .removed)
    try await game.saves.save(World(level: 2), to: secret)
    #expect { try game.saves.rename(secret, to: .main) } throws: { ($0 as? GameDataError)?.code == .misuse }
    #expect { try game.saves.copy(secret, to: .main) } throws: { ($0 as? GameDataError)?.code == .misuse }
    try game.saves.keepLocal(.main, cloudCopy: .kept)
    try game.saves.rename(secret, to: .main)
    try await game.cloud.sync()
    #expect(try game.saves.load(.main)?.level == 2 && cloud.container.slots().isEmpty)
  }

  @Test("a local save counts as seen by no device, and another device's save beside it is shown, whichever is better")
  func saysWhoHasIt() async throws {
    let (here, there) = (try await connected(phone), try tablet.open())
    defer {
      end(here)
      end(there)
    }
    try await here.saves.save(World(level: 2), to: .main, SaveMetadata(progress: 0.9))
    try await here.cloud.sync()
    try here.saves.keepLocal(.main, cloudCopy: .kept)
    try await here.saves.save(World(level: 3), to: .main)
    #expect(try here.core.store.read { try SeenByQuery(["main"], in: $0).isEmpty })
    #expect(try here.saves.status(of: .main).elsewhere == nil)
    // A new game on a device that hasn't received the other save: a second head, with less progress.
    try await there.saves.save(World(level: 1), to: .main, SaveMetadata(progress: 0.1))
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    try await here.cloud.sync()
    #expect(cloud.container.heads(of: "main").count == 2)
    #expect(try here.saves.status(of: .main).elsewhere?.metadata.progress == 0.1)
    #expect(try here.saves.load(.main)?.level == 3)
  }

  @Test("the end of a local declaration is recorded, so that a repair from a backup doesn't restore it")
  func endedInBackups() async throws {
    let game = try phone.open()
    defer { end(game) }
    try game.saves.keepLocal(secret, cloudCopy: .kept)
    try game.saves.syncAgain(secret)
    #expect(try !game.saves.isLocal(secret) && game.core.store.read { try $0.localSlots() }.isEmpty)
    // A repair adds from older sources whatever the store has no record of.
    let word: LocalDeclaration? = try game.core.store.read { try $0.fact("local slot/secret") }
    #expect(word != nil)
  }

  @Test(
    "a file whose name isn't a plain file name can't be placed in a folder",
    arguments: ["../level.dat", "a/b", "..", ".", "c:x", "a\\b"])
  func plainNamesOnly(name: String) async throws {
    let (here, there) = (try await connected(phone), try await connected(tablet))
    defer {
      end(here)
      end(there)
    }
    let source = phone.folder.url.appendingPathComponent("source")
    try Data("hostile".utf8).write(to: source)
    try here.files.track(source, as: name)
    for game in [here, there] { try await game.cloud.sync() }
    #expect(try there.files.list().map(\.name) == [name])
    let folder = tablet.folder.url.appendingPathComponent("levels")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    #expect { try there.files.place(name, in: folder) } throws: { ($0 as? GameDataError)?.code == .misuse }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }
}
