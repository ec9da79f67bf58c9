import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// A game's own file on the player's other devices: listed, placed, updated, never overwritten.
@Suite(.hangLimit) struct FilesOnDevicesTests: AtHome {
  let home: Household

  init() throws { home = try Household() }

  private func url(_ device: Device, _ name: String = "level.dat") -> URL {
    device.folder.url.appendingPathComponent(name)
  }
  private func put(_ text: String, _ device: Device) throws { try Data(text.utf8).write(to: url(device)) }
  private func text(_ device: Device) -> String? {
    (try? Data(contentsOf: url(device))).map { String(decoding: $0, as: UTF8.self) }
  }

  /// A file that the phone wrote and the tablet placed.
  private func shared() async throws -> (here: GameData, there: GameData, mine: TrackedFile, theirs: TrackedFile) {
    let (here, there) = (try await connected(phone), try await connected(tablet))
    try put("one", phone)
    let mine = try here.files.track(url(phone))
    try await settle(here, there)
    return (here, there, mine, try there.files.place("level.dat", at: url(tablet)))
  }

  private func texts(_ versions: [Version], _ file: TrackedFile) throws -> [String] {
    try versions.map { String(decoding: try file.data(of: $0.id), as: UTF8.self) }
  }

  @Test("a file tracked on one device is listed and placed on another, and then syncs in both directions")
  func places() async throws {
    let (here, there) = (try await connected(phone), try await connected(tablet))
    defer {
      end(here)
      end(there)
    }
    try put("one", phone)
    let mine = try here.files.track(url(phone))
    #expect(try here.files.list().map(\.url) == [url(phone).standardizedFileURL])
    try await settle(here, there)
    #expect(try mine.status().state == .stored)
    #expect(there.takeChanges().contains(.files(["level.dat"])))
    let listed = try #require(try there.files.list().first)
    #expect(
      listed.name == "level.dat" && listed.url == nil && !listed.isLocal && !listed.isConflicted
        && listed.current.length == 3)
    #expect(try there.saves.list().isEmpty && there.saves.history(of: "level.dat").isEmpty)
    #expect(text(tablet) == nil)
    let theirs = try there.files.place("level.dat", at: url(tablet))
    #expect(text(tablet) == "one")
    #expect(try !theirs.hasChanged() && theirs.history().count == 1)
    #expect(try there.files.list().map(\.url) == [url(tablet).standardizedFileURL])

    try put("two", tablet)
    _ = try await theirs.capture().value
    try await settle(there, here)
    #expect(text(phone) == "one", "nothing is written before the game asks")
    #expect(try !mine.hasChanged())
    guard case .updated(let version) = try mine.update() else { throw NeverHappened("the update") }
    #expect(text(phone) == "two" && version.state == .stored)
    #expect(try mine.update() == .unchanged && !mine.hasChanged())
    try put("three", phone)
    _ = try await mine.capture().value
    try await settle(here, there)
    #expect(try theirs.heads().count == 1)
    _ = try theirs.update()
    #expect(text(tablet) == "three" && here.incidents.isEmpty && there.incidents.isEmpty)
  }

  @Test("after a restart, a file that wasn't changed on this device doesn't undo what another device wrote")
  func restarts() async throws {
    let (here, there, _, theirs) = try await shared()
    defer { end(there) }
    _ = try await theirs.write(Data("two".utf8)).value
    try await settle(there, here)
    try here.close()
    let again = try await connected(phone)
    defer { end(again) }
    let mine = try again.files.track(url(phone))
    try await settle(again, there)
    #expect(try texts(theirs.heads(), theirs) == ["two"] && texts(mine.heads(), mine) == ["two"])
    #expect(text(phone) == "one")
    _ = try mine.update()
    #expect(text(phone) == "two")
  }

  @Test("an unsynced edit is never overwritten: both versions remain on both devices until the player chooses")
  func conflicts() async throws {
    let (here, there, mine, theirs) = try await shared()
    defer {
      end(here)
      end(there)
    }
    clock.advance(by: .seconds(60))
    _ = try await theirs.write(Data("theirs".utf8)).value
    try await settle(there, here)
    clock.advance(by: .seconds(60))
    // Not captured yet.
    try put("mine", phone)
    guard case .conflict(let versions) = try mine.update() else { throw NeverHappened("the update") }
    #expect(text(phone) == "mine")
    #expect(try texts(versions, mine) == ["mine", "theirs"])
    try await settle(here, there)
    #expect(try texts(theirs.heads(), theirs) == ["mine", "theirs"], "the same order on both devices")
    #expect(try there.files.list().first?.isConflicted == true)
    guard case .conflict = try theirs.update() else { throw NeverHappened("the update") }
    #expect(text(tablet) == "theirs")
    // The player chooses the other version.
    try mine.restore(versions[1].id)
    #expect(text(phone) == "theirs")
    #expect(try mine.heads().count == 1 && here.files.list().first?.isConflicted == false)
    try await settle(here, there)
    #expect(try theirs.heads().count == 1 && theirs.update() == .unchanged && text(tablet) == "theirs")
    #expect(try texts(mine.history(), mine).contains("mine"))
  }

  @Test("placing never replaces a file, link or folder at the URL; a file with the same bytes is accepted")
  func occupied() async throws {
    let (here, there) = (try await connected(phone), try await connected(tablet))
    defer {
      end(here)
      end(there)
    }
    try put("one", phone)
    try here.files.track(url(phone))
    try await settle(here, there)
    #expect(gameErrorCode { try there.files.place("nobody's", at: url(tablet)) } == .missing)
    try put("", tablet)
    #expect(gameErrorCode { try there.files.place("level.dat", at: url(tablet)) } == .occupied)
    #expect(text(tablet) == "")
    let link = url(tablet, "link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: url(tablet, "nowhere"))
    #expect(gameErrorCode { try there.files.place("level.dat", at: link) } == .misuse)
    let folder = url(tablet, "folder")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    #expect(gameErrorCode { try there.files.place("level.dat", at: folder) } == .misuse)
    #expect(
      storeErrorCode { try there.files.place("level.dat", at: URL(fileURLWithPath: "/proc/nowhere/level.dat")) }
        == .missing)
    // The failed calls haven't taken the name.
    try put("one", tablet)
    try there.files.place("level.dat", at: url(tablet))
    #expect(gameErrorCode { try there.files.place("level.dat", at: url(tablet, "twice")) } == .misuse)
    #expect(try there.files.list().map(\.url) == [url(tablet).standardizedFileURL] && text(tablet) == "one")
    #expect(!FileManager.default.fileExists(atPath: url(tablet, "twice").path))
    try await settle(there, here)
    #expect(try here.files.list().first?.isConflicted == false)
    let left = try FileManager.default.contentsOfDirectory(atPath: tablet.folder.url.path).filter {
      $0.hasSuffix(".partial")
    }
    #expect(left.isEmpty)
  }

  @Test("files of one name made on two devices become two heads, unless their bytes are the same")
  func sameName() async throws {
    let (here, there) = (try await connected(phone), try await connected(tablet))
    defer {
      end(here)
      end(there)
    }
    try put("one", phone)
    let mine = try here.files.track(url(phone))
    try await settle(here, there)
    try put("one", tablet)
    var theirs = try there.files.track(url(tablet))
    try await settle(there, here)
    #expect(try mine.history().count == 1)
    there.files.untrack(theirs)
    try put("another", tablet)
    theirs = try there.files.track(url(tablet))
    try await settle(there, here)
    // The new version descends from the one whose bytes the file had before.
    #expect(try texts(mine.heads(), mine) == ["another"])
    let stranger = try Device(clock: clock)
    let third = try await connected(stranger)
    defer { end(third) }
    try put("its own", stranger)
    let own = try third.files.track(url(stranger))
    try await settle(third, here)
    #expect(
      try Set(texts(own.heads(), own)) == ["its own", "another"]
        && Set(texts(mine.heads(), mine)) == ["its own", "another"])
  }

  @Test("`update` restores a missing file, and removing a file from the cloud changes no device's file")
  func gone() async throws {
    let (here, there, mine, theirs) = try await shared()
    defer {
      end(here)
      end(there)
    }
    try FileManager.default.removeItem(at: url(tablet))
    guard case .updated = try theirs.update() else { throw NeverHappened("the update") }
    #expect(text(tablet) == "one")
    // The phone removes it from the cloud.
    try mine.keepLocal(cloudCopy: .removed)
    try await settle(here, there)
    #expect(try mine.isLocal && there.files.list().isEmpty && theirs.heads().isEmpty && theirs.update() == .unchanged)
    #expect(text(phone) == "one" && text(tablet) == "one")
    _ = try await theirs.capture().value
    _ = try await mine.write(Data("two".utf8)).value
    try await settle(there, here)
    #expect(try there.files.list().isEmpty, "an unchanged file isn't sent again by itself")
    #expect(try mine.status().state == .local(.kept))
    _ = try await theirs.write(Data("theirs".utf8)).value
    try await settle(there, here)
    #expect(try mine.status().elsewhere?.slot == "level.dat")
    try mine.syncAgain()
    try await settle(here, there)
    #expect(
      try Set(texts(mine.heads(), mine)) == ["two", "theirs"]
        && Set(texts(theirs.heads(), theirs)) == ["two", "theirs"])
    #expect(text(phone) == "two" && text(tablet) == "theirs")
  }

  @Test("a local file isn't sent, also after a restart, and keeps its history when it begins to sync")
  func staysHere() async throws {
    var here = try await connected(phone)
    try put("one", phone)
    var mine = try here.files.track(url(phone), syncs: false)
    _ = try await mine.write(Data("two".utf8)).value
    try await here.cloud.sync()
    #expect(try mine.isLocal && here.files.list().first?.isLocal == true && cloud.container.slots().isEmpty)
    try here.close()
    here = try await connected(phone)
    defer { end(here) }
    mine = try here.files.track(url(phone))
    _ = try await mine.write(Data("three".utf8)).value
    try await here.cloud.sync()
    #expect(cloud.container.slots().isEmpty)
    here.files.untrack(mine)
    mine = try here.files.track(url(phone), syncs: true)
    try await here.cloud.sync()
    #expect(try !mine.isLocal && mine.status().state == .stored)
    #expect(try texts(mine.history().filter { !$0.isDeleted }, mine).suffix(3) == ["three", "two", "one"])
    let there = try await connected(tablet)
    defer { end(there) }
    try there.files.place("level.dat", at: url(tablet))
    #expect(text(tablet) == "three")
  }

  @Test("a file whose versions an older release kept local remains local until the game syncs it")
  func fromBefore() async throws {
    let store = try Store.open(at: phone.url)
    _ = try store.write { transaction in
      let hash = try transaction.keepContent(Data("one".utf8))
      var random = SystemRandomNumberGenerator()
      let save = SaveDraft(
        id: VersionID(using: &random), slot: "\u{1}file/level.dat", parents: .everyHead, contents: [hash], length: 3,
        savedAtMilliseconds: 1
      )
      return try DeviceCommit.apply(
        CommitDraft(saves: [save]), now: 1, writer: store.writer, in: &transaction, using: &random)
    }
    try store.close()
    let here = try await connected(phone)
    defer { end(here) }
    try put("two", phone)
    let mine = try here.files.track(url(phone))
    try await here.cloud.sync()
    #expect(try mine.isLocal && texts(mine.history(), mine) == ["two", "one"] && texts(mine.heads(), mine) == ["two"])
    #expect(cloud.container.slots().isEmpty)
    try mine.syncAgain()
    try await here.cloud.sync()
    #expect(cloud.container.slots() == ["\u{E000}file/level.dat"])
  }

  @Test("names that begin with a combining accent, or have the greatest length, work like others")
  func names() async throws {
    let here = try await connected(phone)
    defer { end(here) }
    try put("x", phone)
    for name in ["\u{301}e", "über.dat", String(repeating: "n", count: 180)] {
      let file = try here.files.track(url(phone), as: name)
      #expect(try file.history().map(\.slot) == [name.precomposedStringWithCanonicalMapping])
      here.files.untrack(file)
    }
    try await here.cloud.sync()
    #expect(try here.files.names().count == 3 && here.files.list().count == 3)
  }
}
