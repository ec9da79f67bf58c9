#if Cloud
import Foundation
import GRDB
import Keepsake
import KeepsakeServer
import Synchronization
import TestSupport
import Testing

/// A credential store in memory that can be emptied, refuse to be written, and have no room for credentials.
private final class Vault: CredentialStore {
  struct Failure: Error {}

  let entries = Mutex<[String: Data]>([:])
  let isBroken = Shared(false)
  let isFull = Shared(false)

  func read(_ key: String) -> Data? { entries.withLock { $0[key] } }

  func write(_ data: Data, for key: String) throws {
    if isBroken.value || isFull.value && data.count > 64 { throw Failure() }
    entries.withLock { $0[key] = data }
  }

  func remove(_ key: String) { entries.withLock { $0[key] = nil } }
}

/// Games whose credential store is empty after they were installed again, or breaks, at a real server.
@Suite("Credential stores", .hangLimit) struct ReinstalledTests {
  private static let level = ProgressKey("level", default: 1, rule: .max)
  private static let gems = Currency("gems")
  private static let cave = Slot<String>("cave")
  private let vault = Vault()

  private func with(_ body: (LiveServer, URL) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      do {
        try await body(server, folder)
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
    }
  }

  private func open(
    _ name: String, in folder: URL, _ server: LiveServer, _ credentials: CredentialStorage, isOffline: Bool = false
  ) throws -> GameData {
    let game = try GameData.open(
      "com.example.reinstalled", at: folder.appendingPathComponent(name), credentials: credentials)
    if !isOffline { game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: name) }
    return game
  }

  /// How many devices the server has ever registered.
  private func devices(_ folder: URL) throws -> Int {
    var configuration = Configuration()
    configuration.readonly = true
    let path = folder.appendingPathComponent("server/cloud.sqlite").path
    let database = try DatabaseQueue(path: path, configuration: configuration)
    return try #require(try database.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM device") })
  }

  @Test("a device without its credentials is refused and not registered anew; a pairing code brings it back")
  func joinsAgain() async throws {
    try await with { server, folder in
      var phone = try open("phone", in: folder, server, .store(vault))
      try await phone.saves.save("deep", to: Self.cave)
      try phone.wallet.claim(100, Self.gems, key: "starter", for: "welcome")
      try await phone.cloud.sync()
      let tablet = try open("tablet", in: folder, server, .folder)
      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      try await tablet.cloud.sync()
      let player = try await phone.cloud.player()
      try phone.close()
      vault.entries.withLock { $0 = [:] }
      let before = try devices(folder)

      phone = try open("phone", in: folder, server, .store(vault))
      try phone.progress.record(9, for: Self.level)
      #expect(await thrownCode(\GameDataError.code) { try await phone.cloud.sync() } == .refused)
      #expect(await thrownCode(\GameDataError.code) { _ = try await phone.cloud.player() } == .refused)
      #expect(try phone.saves.load(Self.cave) == "deep")
      #expect(try devices(folder) == before)
      try await phone.cloud.join(try await tablet.cloud.pairingCode())
      for game in [phone, tablet, phone] { try await game.cloud.sync() }
      #expect(try await phone.cloud.player() == player)
      #expect(tablet.progress[Self.level] == 9 && phone.wallet[Self.gems].total == 100)
      #expect(try phone.saves.conflict(Self.cave) == nil)
      for game in [phone, tablet] { try game.close() }
      phone = try open("phone", in: folder, server, .store(vault))
      try await phone.cloud.sync()
      #expect(try await phone.cloud.player() == player)
      try phone.close()
    }
  }

  @Test("a player with one device comes back by a recovery code, and the next one can be found in the store only")
  func recovers() async throws {
    try await with { server, folder in
      var phone = try open("phone", in: folder, server, .store(vault))
      try phone.progress.record(7, for: Self.level)
      try await phone.cloud.sync()
      let code = try await phone.cloud.makeRecoveryCode()
      let player = try await phone.cloud.player()
      try phone.close()
      vault.entries.withLock { $0 = [:] }

      phone = try open("phone", in: folder, server, .store(vault))
      #expect(await thrownCode(\GameDataError.code) { try await phone.cloud.sync() } == .refused)
      let next = try await phone.cloud.recover(code)
      #expect(try await phone.cloud.recover(code) == next, "the response may be lost")
      try await phone.cloud.sync()
      #expect(try await phone.cloud.player() == player && phone.progress[Self.level] == 7)
      try phone.close()
      for name in ["cloud.json", "recovery.json"] {
        let url = folder.appendingPathComponent("phone/\(name)")
        let object = try JSONSerialization.jsonObject(with: Data(contentsOf: url)) as? [String: Any]
        let keys = try #require(object).keys
        #expect(Set(keys).subtracting(["folder", "device", "joining"]) == ["stored"], "\(name)")
      }
      #expect(vault.entries.withLock { $0.values.contains { String(decoding: $0, as: UTF8.self).contains(next) } })
    }
  }

  @Test("a copy of a folder that has joined another player brings nothing to that player until it is asked to")
  func copied() async throws {
    try await with { server, folder in
      let tablet = try open("tablet", in: folder, server, .folder)
      try await tablet.cloud.sync()
      var phone = try open("phone", in: folder, server, .store(vault))
      try await phone.cloud.sync()
      try phone.close()
      try FileManager.default.copyItem(
        at: folder.appendingPathComponent("phone"), to: folder.appendingPathComponent("copy"))
      phone = try open("phone", in: folder, server, .store(vault))
      var copy = try open("copy", in: folder, server, .store(vault))
      try await copy.cloud.sync()
      try copy.close()
      // Offline: else it may reach the phone before that joins the other player, and the phone brings it along.
      copy = try open("copy", in: folder, server, .store(vault), isOffline: true)
      try copy.progress.record(9, for: Self.level)
      try copy.close()
      try await phone.cloud.join(try await tablet.cloud.pairingCode())
      try await phone.cloud.sync()

      let again = try open("copy", in: folder, server, .store(vault))
      #expect(await thrownCode(\GameDataError.code) { try await again.cloud.sync() } == .refused)
      try await tablet.cloud.sync()
      #expect(tablet.progress[Self.level] == 1 && again.progress[Self.level] == 9)
      try await again.cloud.join(try await tablet.cloud.pairingCode())
      for game in [again, tablet, phone] { try await game.cloud.sync() }
      #expect(tablet.progress[Self.level] == 9 && phone.progress[Self.level] == 9)
      for game in [phone, tablet, again] { try game.close() }
    }
  }

  @Test("while the store can't be written, a new device registers nothing and uses up no code, however often it starts")
  func brokenFromTheStart() async throws {
    try await with { server, folder in
      let tablet = try open("tablet", in: folder, server, .folder)
      let code = try await tablet.cloud.pairingCode()
      vault.isBroken.value = true
      for _ in 1...3 {
        let phone = try open("phone", in: folder, server, .store(vault))
        await #expect(throws: StoreError.self) { try await phone.cloud.sync() }
        await #expect(throws: StoreError.self) { try await phone.cloud.join(code) }
        try phone.close()
      }
      #expect(try devices(folder) == 1)
      vault.isBroken.value = false
      let phone = try open("phone", in: folder, server, .store(vault))
      try await phone.cloud.join(code)
      #expect(try await phone.cloud.player() == tablet.cloud.player())
      for game in [phone, tablet] { try game.close() }
    }
  }

  @Test("a store that breaks while a new device registers costs no second player, however often it is tried")
  func registersOnce() async throws {
    try await with { server, folder in
      vault.isFull.value = true
      let phone = try open("phone", in: folder, server, .store(vault))
      for _ in 1...3 { await #expect(throws: StoreError.self) { try await phone.cloud.sync() } }
      try phone.progress.record(7, for: Self.level)
      vault.isFull.value = false
      try await phone.cloud.sync()
      #expect(try await phone.cloud.devices().map(\.name) == ["phone"])
      #expect(try devices(folder) == 1)
      try phone.close()
    }
  }
}
#endif
