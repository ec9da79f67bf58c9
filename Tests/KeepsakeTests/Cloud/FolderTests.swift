import Foundation
import Keepsake
import KeepsakeStore
import TestSupport
import Testing

/// Games that share a folder.
@Suite("A game whose cloud is a folder", .hangLimit) struct FolderTests {
  let clock = TestClock()
  let folder: TemporaryFolder
  let phone: Device
  let tablet: Device

  init() throws {
    folder = try TemporaryFolder()
    phone = try Device(clock: clock)
    tablet = try Device(clock: clock)
  }

  @Test("a game continues on another device, large saves included, and later saves arrive automatically")
  func handsOver() async throws {
    let (here, there) = (try phone.open(), try tablet.open())
    defer {
      end(here)
      end(there)
    }
    try await here.saves.save(World(level: 6, cleared: ["a"]), to: .main, SaveMetadata(title: "Cave"))
    try here.progress.record(6, for: .level)
    // Too large to be part of an exchange.
    var random = SystemRandomNumberGenerator()
    let noise = (0..<900_000).map { _ in UInt8.random(in: 0...255, using: &random) }
    try await here.saves.save(Blob(bytes: noise), to: Slot<Blob>("large"))
    here.cloud.connect(.folder(folder.url))
    try await here.cloud.sync()
    #expect(try here.saves.history(of: .main).first?.state == .stored)
    #expect(here.cloud.status.phase == .upToDate && here.cloud.status.waitingCommits == 0)

    there.cloud.connect(.folder(folder.url))
    try await there.cloud.sync()
    #expect(try there.saves.load(.main) == World(level: 6, cleared: ["a"]))
    #expect(try there.saves.list().first { $0.name == "main" }?.current.metadata.title == "Cave")
    let isSame = try there.saves.load(Slot<Blob>("large"))?.bytes == noise
    #expect(isSame)
    try await until { there.progress[.level] == 6 }
    try await there.saves.save(World(level: 7, cleared: ["a", "b"]), to: .main)
    try await until { try here.saves.load(.main)?.level == 7 }
    #expect(here.cloud.status.isListening)
  }

  @Test("a game continues with its folder after a restart; another folder is refused unless the player joins it")
  func otherFolder() async throws {
    var game = try phone.open()
    game.cloud.connect(.folder(folder.url))
    try game.progress.record(3, for: .level)
    try await game.cloud.sync()
    try game.close()
    game = try phone.open()
    game.cloud.connect(.folder(folder.url))
    try game.progress.record(4, for: .level)
    try await game.cloud.sync()

    let other = try TemporaryFolder()
    let there = try tablet.open()
    there.cloud.connect(.folder(other.url))
    try there.progress.record(9, for: .level)
    try await there.cloud.sync()
    there.cloud.connect(.folder(folder.url))
    await #expect { try await there.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .refused }
    #expect(there.progress[.level] == 9)
    guard case .refused(let reason) = there.cloud.status.phase else {
      Issue.record("\(there.cloud.status.phase)")
      return
    }
    #expect(reason.contains("another player"))
    there.cloud.connect(.folder(folder.url, joining: true))
    try await there.cloud.sync()
    try await until { game.progress[.level] == 9 }
    end(game)
    end(there)
  }

  @Test("without iCloud, a container there is waited for, and everything else works; a name that can't be is refused")
  func iCloudOff() async throws {
    let game = try phone.open()
    defer { end(game) }
    game.cloud.connect(.iCloudContainer("iCloud.com.example.space"))
    try game.progress.record(5, for: .level)
    await #expect { try await game.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .unreachable }
    guard case .waiting(let reason) = game.cloud.status.phase else {
      Issue.record("\(game.cloud.status.phase)")
      return
    }
    #expect(reason.contains("iCloud isn't available"))
    game.cloud.connect(.iCloudContainer(folder: "../Saves"))
    await #expect { try await game.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .refused }
    #expect(game.progress[.level] == 5)
  }

  @Test("a missing or removed folder is waited for, not created, and gets the waiting changes when it appears")
  func missingFolder() async throws {
    let place = folder.url.appendingPathComponent("stick")
    let game = try phone.open()
    defer { end(game) }
    game.cloud.connect(.folder(place))
    try game.progress.record(5, for: .level)
    await #expect { try await game.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .unreachable }
    #expect(!FileManager.default.fileExists(atPath: place.path))
    guard case .waiting(let reason) = game.cloud.status.phase else {
      Issue.record("\(game.cloud.status.phase)")
      return
    }
    #expect(reason.contains("there is no folder") && reason.contains("create it"))
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    try await game.cloud.sync()
    // Removed in the middle: nothing is lost, and sync continues automatically.
    let away = folder.url.appendingPathComponent("away")
    try FileManager.default.moveItem(at: place, to: away)
    try game.progress.record(6, for: .level)
    await #expect { try await game.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .unreachable }
    try FileManager.default.moveItem(at: away, to: place)
    try await until { game.cloud.status.waitingCommits == 0 && game.cloud.status.phase == .upToDate }
  }

  @Test("if another player's folder is at the path, during play or at a start, nothing is read, written or lost")
  func swapped() async throws {
    func files(_ url: URL) throws -> Set<String> { Set(try FileManager.default.subpathsOfDirectory(atPath: url.path)) }
    let place = folder.url.appendingPathComponent("stick")
    let (mine, theirs) = (folder.url.appendingPathComponent("mine"), folder.url.appendingPathComponent("theirs"))
    let manager = FileManager.default
    // The other player, with the same slot and the same key.
    try manager.createDirectory(at: place, withIntermediateDirectories: true)
    let other = try tablet.open()
    other.cloud.connect(.folder(place))
    try await other.saves.save(World(level: 99), to: .main)
    try other.progress.record(99, for: .level)
    try await other.cloud.sync()
    try other.close()
    try manager.moveItem(at: place, to: theirs)

    try manager.createDirectory(at: place, withIntermediateDirectories: true)
    var game = try phone.open()
    game.cloud.connect(.folder(place))
    try await game.saves.save(World(level: 2), to: .main)
    try await game.cloud.sync()
    for round in 3...4 {
      try manager.moveItem(at: place, to: mine)
      try manager.moveItem(at: theirs, to: place)
      let before = try files(place)
      if round == 4 {
        try game.close()
        game = try phone.open()
        game.cloud.connect(.folder(place))
      }
      try await game.saves.save(World(level: round), to: .main)
      try game.progress.record(round, for: .level)
      await #expect { try await game.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .refused }
      #expect(try files(place) == before, "round \(round)")
      #expect(
        try game.saves.load(.main)?.level == round && game.saves.conflict(.main) == nil
          && game.progress[.level] == round)
      try manager.moveItem(at: place, to: theirs)
      try manager.moveItem(at: mine, to: place)
      try await game.cloud.sync()
      #expect(game.cloud.status.waitingCommits == 0)
    }
    try game.close()
  }

  @Test("pairing codes are refused for a folder, and the error says what to do instead")
  func noPairing() async throws {
    let game = try phone.open()
    defer { end(game) }
    game.cloud.connect(.folder(folder.url))
    try await game.cloud.sync()
    await #expect { try await game.cloud.pairingCode() } throws: { ($0 as? GameDataError)?.code == .misuse }
    await #expect { try await game.cloud.join("ABCD-EFGH") } throws: {
      ($0 as? GameDataError)?.message.contains("same folder") == true
    }
    #expect(game.cloud.status.phase == .upToDate)
  }

  @Test("without a bank, claims stay pending, money earned on this device can be spent, and sync is up to date")
  func money() async throws {
    let game = try phone.open()
    defer { end(game) }
    game.cloud.connect(.folder(folder.url))
    try game.wallet.earn(10, .gems, for: "chest")
    try game.wallet.claim(50, .gems, key: "starter", for: "a gift")
    try await game.cloud.sync()
    try game.wallet.spend(4, .gems, for: "sword")
    try await game.cloud.sync()
    #expect(gameErrorCode { try game.wallet.spend(7, .gems, for: "shield") } == .insufficient(6, of: 6))
    #expect(game.wallet.bank == .none && game.wallet[.gems].pending == 50)
    // Nobody could be asked, so this doesn't wait.
    await #expect {
      try await game.wallet.spend(7, .gems, for: "shield", askingBankFor: .seconds(1 << 30))
    } throws: {
      ($0 as? GameDataError)?.code == .insufficient(6, of: 6)
    }
    #expect(game.cloud.status.phase == .upToDate)
  }
}

@Archivable struct Blob {
  var bytes: [UInt8] = []
}
