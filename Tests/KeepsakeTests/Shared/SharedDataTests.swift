import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// The data of a shared container on one device.
@Suite(.hangLimit) struct SharedDataTests {
  private let cloud = MemoryCloud()

  @Test("shared data is opened once, stays apart from the game's and other names', and is closed with the game")
  func openedOnce() throws {
    let device = try Device()
    var game = try device.open()
    let shared = try game.shared("studio.coins")
    let other = try game.shared("studio.heroes")
    #expect(try game.shared("studio.coins") === shared)
    #expect(shared.sharedName == "studio.coins" && game.sharedName == nil)
    #expect(shared.url.path == game.url.appendingPathComponent("shared/studio.coins").path)
    try shared.wallet.earn(5, .gems, for: "a quest")
    try shared.progress.record(7, for: .level)
    #expect(game.wallet[.gems].total == 0 && other.wallet[.gems].total == 0 && game.progress[.level] == 1)
    #expect(try game.sharedNames() == ["studio.coins", "studio.heroes"])
    try game.close()
    #expect(shared.isClosed && other.isClosed)
    #expect(gameErrorCode { _ = try game.shared("studio.coins") } == .closed)

    game = try device.open()
    defer { end(game) }
    let again = try game.shared("studio.coins")
    #expect(again.wallet[.gems].total == 5 && again.progress[.level] == 7)
    try again.close()
    let reopened = try game.shared("studio.coins")
    #expect(reopened !== again && reopened.progress[.level] == 7)
    #expect(gameErrorCode { _ = try reopened.shared("inner") } == .misuse)
  }

  @Test(
    "a name that isn't a folder's on every platform, or that no server gives, is misuse",
    arguments: ["", "Coins", "a/b", "..", ".coins", "-coins", "coins.", "con", "com1.x", "a b", "münzen", "a\u{0}"])
  func badNames(name: String) throws {
    let game = try Device().open()
    defer { end(game) }
    #expect(gameErrorCode { _ = try game.shared(name) } == .misuse)
    #expect(gameErrorCode { _ = try game.shared(String(repeating: "a", count: 65)) } == .misuse)
    #expect(try game.sharedNames().isEmpty)
  }

  /// A server that registers the game's own device, and says this to everything about shared containers.
  private func server(_ shared: @escaping @Sendable () -> CannedServer.Reply) throws -> CannedServer {
    try CannedServer { head, _ in
      if head.hasPrefix("POST /v1/shared/") { return shared() }
      if head.hasPrefix("DELETE /v1/player ") { return .http("204 No Content") }
      guard head.hasPrefix("POST /v1/devices") else { return .http("503 X") }
      return .registered(as: 1, token: "parent")
    }
  }

  private static let notEntitled = CannedServer.Reply.http(
    "403 Forbidden", body: #"{"error":{"code":"not_entitled","message":"not entitled"}}"#)

  @Test("shared data asks for its container with the game's token, plays offline without the right to it, and says why")
  func notEntitled() async throws {
    let server = try server { Self.notEntitled }
    defer { server.stop() }
    let game = try Device().open()
    defer { end(game) }
    let shared = try game.shared("studio.coins")
    #expect(shared.cloud.availability == .unavailable(.notConnected))
    game.cloud.connect(.server(server.url, appKey: "key"))
    try await until { shared.cloud.availability == .unavailable(.notEntitled) }
    let asked = server.requests.filter { $0.hasPrefix("POST /v1/shared/studio.coins/devices ") }
    #expect(!asked.isEmpty && asked.allSatisfy { $0.contains("Bearer parent") && !$0.contains("Keepsake-App-Key") })
    #expect(asked.count < 5, "it is tried again slowly")
    try shared.progress.record(7, for: .level)
    try shared.wallet.earn(5, .gems, for: "a quest")
    #expect(shared.progress[.level] == 7 && shared.wallet[.gems].spendable == 5)
    await #expect { try await shared.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .notEntitled }
    #expect(shared.cloud.availability == .unavailable(.notEntitled))
    // A second object of the same game is connected when it is opened.
    let other = try game.shared("studio.heroes")
    try await until { other.cloud.availability == .unavailable(.notEntitled) }
  }

  @Test("the cloud of shared data follows the game's: connecting, its switch, and disconnecting")
  func follows() async throws {
    let server = try server { Self.notEntitled }
    defer { server.stop() }
    let game = try Device().open()
    defer { end(game) }
    game.cloud.connect(.server(server.url, appKey: "key"))
    let shared = try game.shared("studio.coins")
    try await until { shared.cloud.availability == .unavailable(.notEntitled) }
    game.cloud.isEnabled = false
    try await until { shared.cloud.availability == .unavailable(.switchedOff) }
    #expect(!shared.cloud.isEnabled)
    game.cloud.isEnabled = true
    try await until { shared.cloud.availability == .unavailable(.notEntitled) }
    shared.cloud.isEnabled = false
    try await until { shared.cloud.availability == .unavailable(.switchedOff) }
    #expect(game.cloud.isEnabled)
    shared.cloud.isEnabled = true
    game.cloud.disconnect()
    try await until { shared.cloud.availability == .unavailable(.notConnected) }
    game.cloud.connect(.server(server.url, appKey: "key"))
    try await until { shared.cloud.availability == .unavailable(.notEntitled) }
    // It can be disconnected by itself, and any server has it follow again.
    shared.cloud.disconnect()
    try await until { shared.cloud.availability == .unavailable(.notConnected) }
    game.cloud.isEnabled = false
    game.cloud.isEnabled = true
    #expect(shared.cloud.availability == .unavailable(.notConnected))
    shared.cloud.connect(.server(try #require(URL(string: "http://127.0.0.1:1")), appKey: "other"))
    try await until { shared.cloud.availability == .unavailable(.notEntitled) }
  }

  @Test("deleting everything in the cloud counts for shared data as well: what was certain there may be gone")
  func deletedInCloud() async throws {
    let server = try server { Self.notEntitled }
    defer { server.stop() }
    let game = try Device().open()
    defer { end(game) }
    let (shared, apart) = (try game.shared("studio.coins"), try game.shared("studio.heroes"))
    game.cloud.connect(.server(server.url, appKey: "key"))
    apart.cloud.connect(cloud.address)
    try await game.cloud.deleteEverythingInTheCloud()
    for (data, isRefused) in [(game, true), (shared, true), (apart, false)] {
      #expect(try data.core.store.read { try $0.facts().isRefused } == isRefused)
    }
  }

  @Test("shared data has a cloud of its own if it is connected to one, whatever the game's does")
  func ownCloud() async throws {
    let (game, other) = (try Device().open(), try Device().open())
    defer {
      end(game)
      end(other)
    }
    let (mine, theirs) = (try game.shared("studio.coins"), try other.shared("studio.coins"))
    for shared in [mine, theirs] { shared.cloud.connect(cloud.address) }
    try mine.progress.record(9, for: .level)
    try await mine.cloud.sync()
    try await theirs.cloud.sync()
    #expect(theirs.progress[.level] == 9 && other.progress[.level] == 1)
    game.cloud.disconnect()
    try await mine.cloud.sync()
    #expect(mine.cloud.availability == .available && game.cloud.availability == .unavailable(.notConnected))
  }

  @Test("a game that may only read receives everything, has no part in the money, and keeps what it saves until it may")
  func readOnly() async throws {
    let device = try Device()
    var game = try device.open()
    let other = try Device().open()
    defer { end(other) }
    var shared = try game.shared("studio.coins")
    let writer = try other.shared("studio.coins")
    writer.cloud.connect(cloud.address)
    try writer.progress.record(4, for: .level)
    try writer.wallet.earn(9, .gems, for: "a quest")
    try await writer.cloud.sync()

    cloud.access = .readOnly
    shared.cloud.connect(cloud.address)
    try await shared.cloud.sync()
    #expect(shared.cloud.status.isReadOnly && shared.cloud.availability == .available)
    #expect(shared.progress[.level] == 4 && shared.wallet[.gems].total == 0)
    try shared.progress.record(6, for: .level)
    await #expect { try await shared.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .refused }
    #expect(shared.cloud.status.refusals.count == 1 && shared.cloud.status.waitingCommits == 1)
    #expect(gameErrorCode { try shared.wallet.earn(1, .gems, for: "a quest") } == .readOnly)
    #expect(gameErrorCode { try shared.checkpoint { try $0.earn(1, .gems, for: "a quest") } } == .readOnly)
    // It is known offline, too.
    try game.close()
    game = try device.open()
    defer { end(game) }
    shared = try game.shared("studio.coins")
    #expect(shared.cloud.status.isReadOnly)
    #expect(gameErrorCode { try shared.wallet.earn(1, .gems, for: "a quest") } == .readOnly)
    #expect(shared.progress[.level] == 6)

    cloud.access = .readWrite
    shared.cloud.connect(cloud.address)
    try await shared.cloud.sync()
    #expect(!shared.cloud.status.isReadOnly && shared.cloud.status.refusals.isEmpty)
    try await writer.cloud.sync()
    #expect(writer.progress[.level] == 6)
    try shared.wallet.earn(1, .gems, for: "a quest")
  }

  @Test("an account is forgotten with its shared data, unless that would lose some; adopting leaves it behind")
  func accounts() async throws {
    let folder = try TemporaryFolder()
    func open(_ account: Account) throws -> GameData {
      try GameData.open("com.example.space", account: account, in: folder.url)
    }
    let guest = try open(.guest)
    try guest.shared("studio.coins").progress.record(3, for: .level)
    try guest.close()
    let ada = try open(.named("ada"))
    #expect(try ada.sharedNames().isEmpty, "another account has other shared data")
    let adoption = try ada.adopt(.guest, emptying: true)
    #expect(adoption.left.shared == ["studio.coins"] && !adoption.isEmptied)
    end(ada)
    do {
      try GameData.forget(.guest, of: "com.example.space", in: folder.url)
      Issue.record("shared data that no cloud has was deleted")
    } catch let error as GameDataError {
      guard case .wouldBeLost = error.code else { throw error }
    }
    let again = try open(.guest)
    #expect(try again.shared("studio.coins").progress[.level] == 3)
    end(again)
    try GameData.forget(.guest, of: "com.example.space", in: folder.url, losing: true)
    let fresh = try open(.guest)
    defer { end(fresh) }
    #expect(try fresh.shared("studio.coins").progress[.level] == 1)
  }
}
