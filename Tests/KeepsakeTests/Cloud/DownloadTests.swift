import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeStore
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// Saves that remain in the cloud until the game downloads them.
@Suite(.hangLimit) struct DownloadTests: AtHome {
  let home: Household

  init() throws { home = try Household() }

  private let diary = Slot<Journal>("diary")
  private static let limit = 100_000

  /// Text that is too long, and compresses too badly, to be part of a response.
  private func pages(_ seed: UInt64, _ count: Int = 600_000) -> Journal {
    var random = SeededGenerator(seed: seed)
    return Journal(text: (0..<count / 8).map { _ in String(random.next(), radix: 36) }.joined())
  }

  private func frugal(_ device: Device, _ policy: DownloadPolicy = .onDemand(above: limit)) async throws -> GameData {
    let game = try device.open()
    game.cloud.downloads = policy
    game.cloud.connect(cloud.address)
    try await game.cloud.sync()
    return game
  }

  /// The phone has saved the diary, and the tablet knows of it.
  private func played(_ text: Journal) async throws -> (here: GameData, there: GameData) {
    let here = try await connected(phone)
    try await here.saves.save(text, to: diary, SaveMetadata(title: "June"))
    try await here.saves.save(World(level: 3), to: .main)
    try await here.cloud.sync()
    return (here, try await frugal(tablet))
  }

  /// Compared here, so that a failure doesn't print hundreds of thousands of characters.
  private func holds(_ pages: Journal, _ game: GameData) throws -> Bool { try game.saves.load(diary) == pages }

  private func isNotDownloaded(_ game: GameData) throws -> Bool {
    gameErrorCode { _ = try game.saves.load(diary) } == .notDownloaded
  }

  @Test("a large save is listed but not downloaded until the game requests it; a small one is downloaded")
  func onDemand() async throws {
    let text = pages(1)
    let (here, there) = try await played(text)
    defer {
      end(here)
      end(there)
    }
    let listed = try there.saves.list()
    #expect(listed.map(\.name) == ["diary", "main"] && listed.map(\.isDownloaded) == [false, true])
    #expect(listed[0].current.metadata.title == "June")
    #expect(try there.saves.load(.main)?.level == 3)
    #expect(try isNotDownloaded(there))
    let status = try there.saves.status(of: diary)
    #expect(!status.isDownloaded && status.arrival == nil && status.state == .stored)
    #expect(there.incidents.isEmpty, "a save that isn't downloaded isn't damaged")
    #expect(try there.saves.history(of: diary).isEmpty)

    try await there.saves.download(diary)
    #expect(try holds(text, there))
    #expect(try there.saves.list().allSatisfy(\.isDownloaded) && there.saves.status(of: diary).isDownloaded)
    #expect(try there.saves.history(of: diary).count == 1)
    // Downloading it again needs no network.
    cloud.isCut = true
    try await there.saves.download(diary)
  }

  @Test("a save that isn't downloaded remains so over restarts, until the policy downloads everything")
  func restarted() async throws {
    let text = pages(2)
    let (here, there) = try await played(text)
    defer { end(here) }
    end(there)
    let again = try await frugal(tablet)
    #expect(try isNotDownloaded(again))
    end(again)
    let offline = try tablet.open()
    #expect(try isNotDownloaded(offline))
    await #expect { try await offline.saves.download(diary) } throws: { ($0 as? GameDataError)?.code == .notConnected }
    end(offline)
    let greedy = try await frugal(tablet, .ahead)
    defer { end(greedy) }
    try await until { try greedy.saves.status(of: diary).isDownloaded }
    #expect(try holds(text, greedy))
  }

  @Test("a new version is downloaded by itself only if the one it replaces was; a download gets the newest one")
  func replaced() async throws {
    let (here, there) = try await played(pages(3))
    defer {
      end(here)
      end(there)
    }
    _ = try here.saves.load(diary)
    try await here.saves.save(pages(4), to: diary)
    try await settle(here, there)
    #expect(try isNotDownloaded(there))
    try await there.saves.download(diary)
    #expect(try holds(pages(4), there))
    try await here.saves.save(pages(5), to: diary)
    try await settle(here, there)
    try await until { try holds(pages(5), there) }
  }

  @Test("saving beside a save that isn't downloaded replaces nothing and downloads it: both are in conflict")
  func conflict() async throws {
    let (here, there) = try await played(pages(6))
    defer {
      end(here)
      end(there)
    }
    #expect(try isNotDownloaded(there))
    // Like a game that takes the error for an empty slot. The download can't end before the save is loaded.
    cloud.isCut = true
    try await there.saves.save(Journal(text: "begun anew"), to: diary)
    #expect(try there.saves.load(diary)?.text == "begun anew")
    try await heal(there)
    try await until { try there.saves.conflict(diary) != nil }
    #expect(try there.saves.conflict(diary)?.sides.count == 2)
    try await settle(here, there)
    #expect(try here.saves.conflict(diary)?.sides.count == 2)
    let sides = try #require(try here.saves.conflict(diary)?.sides.map(\.value))
    let isBoth = Set(sides.map(\.text)) == [pages(6).text, "begun anew"]
    #expect(isBoth)
  }

  @Test("`fetch` downloads a save that isn't downloaded yet")
  func fetched() async throws {
    let (here, there) = try await played(pages(7))
    defer {
      end(here)
      end(there)
    }
    let found = try await there.saves.fetch(diary, waitingUpTo: .seconds(60))
    let isWhole = found == pages(7)
    #expect(isWhole)
  }

  @Test(
    "saving after a failed fetch or an offline restart replaces nothing, and conflicts with the cloud's save",
    arguments: [true, false])
  func failedFetch(restarted: Bool) async throws {
    var (here, there) = try await played(pages(15))
    defer {
      end(here)
      end(there)
    }
    cloud.isCut = true
    if restarted {
      end(there)
      there = try tablet.open()
      there.cloud.downloads = .onDemand(above: Self.limit)
      there.cloud.connect(cloud.address)
    }
    if !restarted {
      _ = try there.saves.list()
      await #expect(throws: GameDataError.self) { try await there.saves.fetch(diary, waitingUpTo: .seconds(1)) }
    }
    try await there.saves.save(Journal(text: "begun anew"), to: diary)
    try await heal(here, there)
    try await settle(here, there)
    #expect(try here.saves.conflict(diary)?.sides.count == 2)
    try await until { try there.saves.conflict(diary) != nil }
  }

  @Test("two slots with the same content download it together, and neither can evict what the other one needs")
  func sameBytes() async throws {
    let other = Slot<Journal>("before the battle")
    let (here, there) = try await played(pages(16))
    defer {
      end(here)
      end(there)
    }
    try here.saves.copy(diary, to: other)
    try await settle(here, there)
    #expect(try there.saves.list().map(\.isDownloaded) == [false, false, true])
    async let first: Void = there.saves.download(diary)
    async let second: Void = there.saves.download(other)
    _ = try await (first, second)
    #expect(try there.saves.list().allSatisfy(\.isDownloaded))
    #expect(gameErrorCode { try there.saves.evict(diary, keepingHistory: false) } == .misuse)
    #expect(try holds(pages(16), there))
  }

  @Test("with manual delivery, a version given up as damaged doesn't count as not downloaded; the one before loads")
  func damagedOrLeft() async throws {
    let here = try await connected(phone)
    try await here.saves.save(World(level: 1), to: .main)
    try await here.saves.save(pages(17), to: diary)
    try await here.cloud.sync()
    let there = try tablet.open()
    defer { end(there) }
    there.cloud.delivery = .manually
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    try there.cloud.deliver()
    there.cloud.disconnect()
    try await until { there.cloud.status.phase == .off }
    try await here.saves.save(pages(18), to: diary)
    try await here.cloud.sync()
    // No device is left that could upload it again.
    end(here)
    // The cloud keeps only the contents of the small save and of the first diary.
    var damaged = cloud.container
    let kept = try there.core.store.read { transaction in
      try ["diary", "main"].flatMap { try transaction.heads(of: $0) }.flatMap {
        try transaction.version($0)?.record.contents ?? []
      }
    }
    damaged.removeContents(butNot: Set(kept))
    cloud.container = damaged
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    try await until { there.cloud.status.hasArrivals }
    try there.cloud.deliver()
    #expect(try there.core.store.read { try $0.notDownloadedVersions().isEmpty })
    #expect(try holds(pages(17), there), "the newest good version")
  }

  @Test("a save can be evicted only if the cloud certainly has it, and can be downloaded again in full")
  func evicted() async throws {
    let game = try phone.open()
    defer { end(game) }
    game.cloud.downloads = .onDemand(above: Self.limit)
    try await game.saves.save(pages(9), to: diary)
    try await game.saves.save(pages(8), to: diary)
    func refuses() -> Bool { gameErrorCode { try game.saves.evict(diary, keepingHistory: true) } == .misuse }
    #expect(refuses(), "no cloud")
    game.cloud.connect(cloud.address)
    try await game.cloud.sync()
    let version = try #require(try game.saves.history(of: diary).first)
    try game.saves.pin(version.id)
    #expect(refuses(), "pinned")
    try game.saves.unpin(version.id)
    game.cloud.downloads = .ahead
    #expect(refuses(), "it would be downloaded again at once")
    game.cloud.downloads = .onDemand(above: Self.limit)
    cloud.isCut = true
    let text = pages(14)
    try await game.saves.save(text, to: diary)
    #expect(refuses(), "the newest version isn't in the cloud yet")
    try await heal(game)
    try await game.cloud.sync()

    try game.saves.evict(diary, keepingHistory: true)
    #expect(try isNotDownloaded(game))
    #expect(try game.saves.history(of: diary).count == 2, "the older versions remain")
    let old = try #require(try game.saves.history(of: diary).last)
    let isOld = try game.saves.value(of: old.id, in: diary) == pages(9)
    #expect(isOld)
    try await game.saves.download(diary)
    #expect(try holds(text, game))
    try game.saves.evict(diary, keepingHistory: false)
    #expect(try isNotDownloaded(game) && game.saves.history(of: diary).isEmpty)
    let bytes = try game.core.store.read { transaction in
      try transaction.heads(of: "diary").flatMap { try transaction.version($0)?.record.contents ?? [] }.count(
        where: transaction.hasContent)
    }
    #expect(bytes == 0, "its content is removed from this device")
    try await game.cloud.sync()
    #expect(try isNotDownloaded(game), "a sync doesn't download it")
    try await game.saves.download(diary)
    #expect(try holds(text, game))
  }

  @Test("a restored cloud gets a lost save from a device that has it; another device reports it until then")
  func restoredCloud() async throws {
    let backup = cloud.container
    let (here, there) = try await played(pages(10))
    defer { end(there) }
    end(here)
    cloud.container = backup
    do { try await there.cloud.sync() } catch let error as GameDataError { #expect(error.code == .refused) }
    try await until { there.cloud.status.refusals.map(\.slot) == ["diary"] }
    #expect(try isNotDownloaded(there), "still known, and still not downloaded")
    #expect(cloud.container.heads(of: "main").count == 1, "the cloud has everything else again")
    await #expect { try await there.saves.download(diary) } throws: { ($0 as? GameDataError)?.code == .missing }
    let again = try await connected(phone)
    defer { end(again) }
    try await again.cloud.sync()
    try await there.cloud.sync()
    #expect(there.cloud.status.refusals.isEmpty)
    try await there.saves.download(diary)
    #expect(try holds(pages(10), there))
  }

  @Test("if a restored cloud lost several saves, each is reported, within a few exchanges")
  func restoredCloudLostMany() async throws {
    let backup = cloud.container
    let (here, there) = try await played(pages(20))
    defer { end(there) }
    for number in 0..<12 {
      try await here.saves.save(pages(UInt64(30 + number), 300_000), to: Slot<Journal>("page \(number)"))
    }
    try await settle(here, there)
    end(here)
    cloud.container = backup
    let before = cloud.exchanges
    do { try await there.cloud.sync() } catch let error as GameDataError { #expect(error.code == .refused) }
    #expect(there.cloud.status.refusals.count == 13)
    #expect(cloud.exchanges - before <= 8, "\(cloud.exchanges - before) exchanges")
  }

  @Test("a repaired store still knows which save is not downloaded")
  func repaired() async throws {
    let (here, there) = try await played(pages(11))
    defer { end(here) }
    let url = there.core.store.url
    try await there.progress.record(3, for: .level).value
    end(there)
    let database = try DatabaseQueue(path: url.appendingPathComponent("store.sqlite").path)
    try await database.write { try $0.execute(sql: "UPDATE cell SET body = x'00'") }
    try database.close()
    // The repair copies everything into a new database.
    do {
      let doctor = try StoreDoctor(at: url)
      let diagnosis = try doctor.examine()
      #expect(diagnosis.plan == .recover)
      _ = try doctor.repair(diagnosis)
    }
    let again = try await frugal(tablet)
    defer { end(again) }
    #expect(try isNotDownloaded(again))
    try await again.saves.download(diary)
    #expect(try holds(pages(11), again))
  }

  @Test("a save that isn't downloaded can't be copied, exported or made local, but can be deleted")
  func refusesDetours() async throws {
    let (here, there) = try await played(pages(12))
    defer {
      end(here)
      end(there)
    }
    #expect(gameErrorCode { try there.saves.copy(diary, to: Slot<Journal>("other")) } == .notDownloaded)
    #expect(gameErrorCode { _ = try there.saves.export(diary) } == .notDownloaded)
    #expect(gameErrorCode { try there.saves.keepLocal(diary, cloudCopy: .removed) } == .notDownloaded)
    #expect(try there.saves.list().count == 2)
    // Deleting a save doesn't need its content.
    try there.saves.delete(diary)
    try await settle(there, here)
    #expect(try here.saves.load(diary) == nil)
  }

  @Test("a tracked file that isn't downloaded is listed, and can be placed only once it is downloaded")
  func files() async throws {
    let folder = try TemporaryFolder()
    let (here, there) = (try await connected(phone), try await frugal(tablet))
    defer {
      end(here)
      end(there)
    }
    let bytes = Data(pages(13).text.utf8)
    try bytes.write(to: folder.url.appendingPathComponent("world.dat"))
    try here.files.track(folder.url.appendingPathComponent("world.dat"), syncs: true)
    try await settle(here, there)
    #expect(try there.files.list().map(\.isDownloaded) == [false])
    let copy = folder.url.appendingPathComponent("copy.dat")
    #expect(gameErrorCode { try there.files.place("world.dat", at: copy) } == .notDownloaded)
    #expect(!FileManager.default.fileExists(atPath: copy.path))
    try await there.files.download("world.dat")
    try there.files.place("world.dat", at: copy)
    #expect(try ContentHash(of: Data(contentsOf: copy)) == ContentHash(of: bytes))
    #expect(try there.files.list().map(\.isDownloaded) == [true])
  }
}
