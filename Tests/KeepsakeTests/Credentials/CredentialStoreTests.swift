import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// Games whose credentials are in a store, which may fail or be empty. No server is at their address: what they decide
/// before asking one is what is tested. `KeepsakeServerTests/ReinstalledTests` has one.
@Suite(.hangLimit) struct CredentialStoreTests {
  let folder: TemporaryFolder
  let store = MemoryCredentials()
  let cloud = MemoryCloud()
  let clock = TestClock()

  init() throws { folder = try TemporaryFolder() }

  private var url: URL { folder.url.appendingPathComponent("data") }

  private func open(_ credentials: CredentialStorage? = nil) throws -> GameData {
    try GameData.open(
      "com.example.space", at: url, credentials: credentials ?? .store(store), environment: clock.environment)
  }

  private func contents() throws -> CloudFile.Contents {
    CloudFile.Contents(
      credentials: CloudCredentials(
        url: try nowhere(), device: DeviceID(high: 0, low: 1), player: PlayerID(high: 0, low: 1), container: cloud.id,
        token: "a token"))
  }

  private func nowhere() throws -> URL { try #require(URL(string: "http://127.0.0.1:1/")) }

  private func connect(_ game: GameData) throws { game.cloud.connect(.server(try nowhere(), appKey: "a key")) }

  /// Makes a game that belongs to a player and has a save.
  private func play(_ credentials: CredentialStorage) async throws {
    let game = try open(credentials)
    game.cloud.connect(cloud.address)
    try await game.saves.save(World(level: 7), to: .main)
    try await game.cloud.sync()
    try CloudFile(in: url, of: game.core.store.base, credentials).write(contents())
    try game.close()
  }

  private func isRefused(_ game: GameData) -> Bool {
    if case .refused = game.cloud.status.phase { true } else { false }
  }

  private func isWaiting(_ game: GameData) -> Bool {
    if case .waiting = game.cloud.status.phase { true } else { false }
  }

  @Test(
    "a device whose credentials are gone says so, keeps its data, and asks no server to make it another player",
    arguments: [true, false])
  func reinstalled(hasReference: Bool) async throws {
    try await play(.store(store))
    store.removeAll()
    let file = url.appendingPathComponent(CloudFile.name)
    if !hasReference { try FileManager.default.removeItem(at: file) }
    let game = try open()
    defer { end(game) }
    try connect(game)
    try await until { isRefused(game) }
    #expect(game.cloud.availability == .unavailable(.refused))
    // The server at this address would be `unreachable`.
    for _ in 1...2 {
      #expect(await thrownCode(\GameDataError.code) { try await game.cloud.sync() } == .refused)
      #expect(await thrownCode(\GameDataError.code) { _ = try await game.cloud.pairingCode() } == .refused)
      #expect(
        await thrownCode(\GameDataError.code) { try await game.cloud.signIn(.token("a", issuer: "b")) } == .refused)
    }
    #expect(await thrownCode(\GameDataError.code) { try await game.cloud.join("ABCDEFGH") } == .unreachable)
    #expect(try game.saves.load(.main)?.level == 7)
    try await game.saves.save(World(level: 8), to: .main)
    #expect(store.entries.isEmpty && FileManager.default.fileExists(atPath: file.path) == hasReference)
  }

  @Test("while the store can't be read, the game plays on and says why; then it continues as the same device")
  func locked() async throws {
    try await play(.store(store))
    store.faults.value = [.read]
    let game = try open()
    defer { end(game) }
    // Pauses become longer: none ends before the store is healed.
    clock.holdsPauses.value = true
    try connect(game)
    try await until { game.incidents.contains { $0.kind == .credentialStoreFailed } }
    try await until { game.cloud.availability == .unavailable(.storeFailed) }
    try await game.saves.save(World(level: 8), to: .main)
    await #expect(throws: StoreError.self) { try await game.cloud.sync() }
    await #expect(throws: StoreError.self) { _ = try await game.cloud.player() }
    await #expect(throws: StoreError.self) { try await game.cloud.join("ABCDEFGH") }
    #expect(game.incidents.count == 1 && store.entries.count == 1)
    store.faults.value = []
    // It finds out by itself, and asks the server.
    clock.holdsPauses.value = false
    try await until { isWaiting(game) }
    #expect(try await game.cloud.player() == contents().credentials.player.description)
  }

  @Test("what is in the folder moves into the store when the game connects; if it can't, it is used where it is")
  func moves() async throws {
    try await play(.folder)
    store.faults.value = [.write]
    var game = try open()
    try RecoveryFile(in: url, of: game.core.store.base, .folder).handOver(
      RecoveryFile(in: url, of: game.core.store.base, .folder).new())
    try connect(game)
    try await until { isWaiting(game) }
    #expect(game.incidents.map(\.kind) == [.credentialStoreFailed])
    #expect(try await game.cloud.player() == contents().credentials.player.description)
    try game.close()
    #expect(try CloudFile(in: url, of: nil, .folder).read() != nil && store.entries.isEmpty)

    store.faults.value = []
    game = try open()
    defer { end(game) }
    try connect(game)
    try await until { store.entries.count == 2 && isWaiting(game) }
    #expect(try await game.cloud.player() == contents().credentials.player.description)
    #expect(game.incidents.isEmpty)
    for name in [CloudFile.name, RecoveryFile.name] {
      #expect(try Data(contentsOf: url.appendingPathComponent(name)).count < 140, "\(name)")
    }
  }

  @Test("what can't be moved keeps nothing else from moving, and a join that it would fail asks no server")
  func movesTheRest() async throws {
    try await play(.folder)
    var game = try open(.folder)
    let base = game.core.store.base
    var former = try contents().credentials
    former.token = String(repeating: "a", count: CredentialStorage.maximumBytes)
    try FormerClouds(in: url, of: base, .folder).add([former])
    _ = try RecoveryFile(in: url, of: base, .folder).new()
    try game.close()
    game = try open()
    defer { end(game) }
    try connect(game)
    try await until { isWaiting(game) }
    #expect(store.entries.count == 2 && game.incidents.map(\.kind) == [.credentialStoreFailed])
    #expect(try CloudFile(in: url, of: nil, .folder.moving(from: store)).read() != nil)
    #expect(try FormerClouds(in: url, of: nil, .folder).all() == [former])
    // The server at this address would be `unreachable`.
    await #expect {
      try await game.cloud.join("ABCDEFGH")
    } throws: {
      ($0 as? StoreError)?.code == .tooLarge
    }
  }

  @Test("a device that has lost its credentials moves what else it has")
  func lostMovesTheRest() async throws {
    try await play(.store(store))
    store.removeAll()
    var game = try open()
    _ = try RecoveryFile(in: url, of: game.core.store.base, .folder).new()
    try game.close()
    game = try open()
    defer { end(game) }
    try connect(game)
    try await until { isRefused(game) }
    #expect(store.entries.count == 1)
  }

  @Test("a recovery code that a device has used is in the store")
  func recoveryCode() throws {
    let game = try open()
    defer { end(game) }
    let file = RecoveryFile(in: url, of: game.core.store.base, .store(store))
    let next = try file.next(after: file.new())
    #expect(store.entries.count == 1)
    let entry = try #require(store.entries.values.first)
    #expect(String(decoding: entry, as: UTF8.self).contains(next.text))
    let bytes = try Data(contentsOf: url.appendingPathComponent(RecoveryFile.name))
    #expect(!String(decoding: bytes, as: UTF8.self).contains(next.text))
  }

  @Test("a game that doesn't name the store any more gets an error, and never another player")
  func storeNotGiven() async throws {
    try await play(.store(store))
    let game = try open(.folder)
    defer { end(game) }
    try connect(game)
    try await until { game.cloud.availability == .unavailable(.storeFailed) }
    await #expect { try await game.cloud.sync() } throws: { ($0 as? StoreError)?.code == .misuse }
    #expect(try CloudFile(in: url, of: nil, .store(store)).read() != nil)
  }

  @Test(
    "a store that can't keep anything is noticed before a server is asked for what it would lose",
    arguments: [MemoryCredentials.Fault.write, .forgetting, .afterWriting, .remove])
  func notKept(fault: MemoryCredentials.Fault) async throws {
    store.faults.value = [fault]
    let game = try open()
    defer { end(game) }
    clock.holdsPauses.value = true
    try connect(game)
    // The server at this address would be `unreachable`.
    await #expect(throws: StoreError.self) { try await game.cloud.sync() }
    await #expect(throws: StoreError.self) { try await game.cloud.join("ABCDEFGH") }
    store.faults.value = []
    #expect(await thrownCode(\GameDataError.code) { try await game.cloud.join("ABCDEFGH") } == .unreachable)
    // The game syncs by itself, too, and may just be trying what the store keeps.
    try await until("nothing is left in the store") { store.entries.isEmpty }
  }

  // MARK: Deleting

  private func open(_ account: Account) throws -> GameData {
    try GameData.open(
      "com.example.space", account: account, in: folder.url, credentials: .store(store),
      environment: clock.environment)
  }

  /// Makes an account with credentials, and returns its folder.
  private func make(_ account: Account) throws -> URL {
    let game = try open(account)
    try CloudFile(in: game.url, of: game.core.store.base, .store(store)).write(contents())
    try game.close()
    return game.url
  }

  private func forget(_ account: Account, _ credentials: CredentialStorage? = nil) throws {
    try GameData.forget(account, of: "com.example.space", in: folder.url, credentials: credentials ?? .store(store))
  }

  @Test("forgetting an account or deleting a profile removes its entries, and no others")
  func deletes() throws {
    _ = try make(.named("ada"))
    let guest = try make(.guest)
    #expect(store.entries.count == 2)
    try forget(.named("ada"))
    #expect(try store.entries.count == 1 && CloudFile(in: guest, of: nil, .store(store)).read() != nil)
    try GameData.deleteProfile("default", in: folder.url, credentials: .store(store))
    #expect(store.entries.isEmpty)
  }

  @Test("signing out removes the entries only if the account is forgotten")
  func signsOut() async throws {
    _ = try make(.guest)
    var game = try open(.guest)
    try await game.signOut()
    #expect(store.entries.count == 1)
    game = try open(.guest)
    try await game.signOut(forgetting: true, losing: true)
    #expect(store.entries.isEmpty && !FileManager.default.fileExists(atPath: game.url.path))
  }

  @Test("an account whose store isn't named isn't deleted, since its entries would stay forever")
  func deletesWithoutStore() throws {
    let place = try make(.named("ada"))
    #expect(storeErrorCode { try forget(.named("ada"), .folder) } == .misuse)
    #expect(try CloudFile(in: place, of: nil, .store(store)).read() != nil)
    try open(.named("ada")).close()
  }

  @Test("an entry that can't be removed is an error; the account is gone, and the next removal removes the entry")
  func removingFails() throws {
    let place = try make(.named("ada"))
    _ = try make(.named("ben"))
    store.faults.value = [.remove]
    #expect(storeErrorCode { try forget(.named("ada")) } == .io)
    #expect(!FileManager.default.fileExists(atPath: place.path) && store.entries.count == 2)
    #expect(try GameData.accounts(of: "com.example.space", in: folder.url).map(\.account) == [.named("ben")])
    store.faults.value = []
    try forget(.named("ben"))
    #expect(store.entries.isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.deletingLastPathComponent().path).isEmpty)
  }

  @Test(
    "an account whose credentials can't be read can be deleted",
    arguments: ["{\"stored\":\"no key\"}", String(repeating: "a", count: FormerClouds.maximumBytes + 1), nil])
  func deletesUnreadable(text: String?) async throws {
    let place = try make(.named("ada"))
    let file = place.appendingPathComponent(CloudFile.name)
    func damage() throws {
      try FileManager.default.removeItem(at: file)
      if let text {
        try Data(text.utf8).write(to: file)
      } else {
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
      }
    }
    try damage()
    try forget(.named("ada"), .folder)
    #expect(!FileManager.default.fileExists(atPath: place.path))
    _ = try make(.named("ada"))
    try damage()
    try await open(.named("ada")).signOut(forgetting: true, losing: true)
    #expect(!FileManager.default.fileExists(atPath: place.path))
  }

  @Test("what an interrupted removal left isn't deleted by one that doesn't have its store")
  func removedWithoutStore() throws {
    let place = try make(.named("ada"))
    for name in ["ben", "eve"] {
      let game = try GameData.open(
        "com.example.space", account: .named(name), in: folder.url, environment: clock.environment)
      try game.close()
    }
    store.faults.value = [.remove]
    #expect(storeErrorCode { try forget(.named("ada")) } == .io)
    store.faults.value = []
    #expect(storeErrorCode { try forget(.named("ben"), .folder) } == .io)
    #expect(try store.entries.count == 1 && GameData.accounts(of: "com.example.space", in: folder.url).count == 1)
    try forget(.named("eve"))
    #expect(store.entries.isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.deletingLastPathComponent().path).isEmpty)
  }

  @Test("an adopted guest that is emptied leaves no entry in the store")
  func adopts() throws {
    let guest = try make(.guest)
    let game = try open(.named("ada"))
    defer { end(game) }
    #expect(try game.adopt(.guest, emptying: true).isEmptied)
    #expect(store.entries.isEmpty && !FileManager.default.fileExists(atPath: guest.path))
  }
}
