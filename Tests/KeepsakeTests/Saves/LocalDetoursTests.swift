import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// Ways on which a slot that stays here, or came back, could lose what is in it or give it away.
@Suite(.hangLimit) struct LocalDetoursTests: AtHome {
  let home: Household

  init() throws { home = try Household() }

  private let secret = Slot<World>("secret")

  @Test("a save that never left is offered when its slot syncs again, though nothing was saved meanwhile")
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

  @Test("a slot that stays here isn't copied or renamed into one that doesn't")
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

  @Test(
    "nobody is said to have what was saved here, and what another device saved beside it is told whichever is better")
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
    // Begun anew, without having heard of the other: it stands beside what was left, and has come less far.
    try await there.saves.save(World(level: 1), to: .main, SaveMetadata(progress: 0.1))
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    try await here.cloud.sync()
    #expect(cloud.container.heads(of: "main").count == 2)
    #expect(try here.saves.status(of: .main).elsewhere?.metadata.progress == 0.1)
    #expect(try here.saves.load(.main)?.level == 3)
  }

  @Test("a declaration that was taken back stays taken back, also where a backup still knows it")
  func endedInBackups() async throws {
    let game = try phone.open()
    defer { end(game) }
    try game.saves.keepLocal(secret, cloudCopy: .kept)
    try game.saves.syncAgain(secret)
    #expect(try !game.saves.isLocal(secret) && game.core.store.read { try $0.localSlots() }.isEmpty)
    // A repair adds from older sources whatever has no word here.
    let word: LocalDeclaration? = try game.core.store.read { try $0.fact("local slot/secret") }
    #expect(word != nil)
  }

  @Test(
    "a file whose name leads elsewhere is not placed in a folder",
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
