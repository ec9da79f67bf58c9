#if Cloud
import Foundation
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// Bans in memory and in the database are the same, whatever happens at the same time.
@Suite("Bans", .hangLimit) struct BanTests {
  private static let identity = DeviceIdentity(
    device: DeviceID(high: 1, low: 1), player: PlayerID(high: 1, low: 2), container: ContainerID(high: 1, low: 3),
    app: AppID(ofKey: "an app key"))

  private static func entry() -> AuditEntry {
    AuditEntry(atMilliseconds: 5, key: "k", name: "ada", act: "player.ban", request: "r")
  }

  /// The ban as the database has it.
  private func row(of container: ContainerID, _ storage: any AdminStorage) async throws -> Ban? {
    #if PostgreSQL
    if let storage = storage as? ShardedStorage {
      return try await storage.at(container) { one in try await one.transaction { try $0.ban(of: container) } }
    }
    if let storage = storage as? PostgreSQLStorage {
      return try await storage.transaction { try $0.ban(of: container) }
    }
    #endif
    let storage = try #require(storage as? SQLiteCloudStorage)
    return try await storage.reading { try Ban.row(of: container, in: $0) }
  }

  @Test(
    "a player who was deleted meanwhile isn't banned, and nothing of the player comes back", arguments: TestStorage.all)
  func deleted(kind: TestStorage) async throws {
    try await kind.with { storage in
      let container = Self.identity.container
      let ban = Ban(reason: "x", sinceMilliseconds: 1)
      try await storage.setBan(ban, of: container, auditing: Self.entry())
      #expect(storage.ban(of: container) == ban)
      try await storage.delete(container, now: 1)
      #expect(storage.ban(of: container) == nil)
      await #expect {
        try await storage.setBan(ban, of: container, auditing: Self.entry())
      } throws: {
        ($0 as? APIError)?.code == .playerUnknown
      }
      #expect(try await row(of: container, storage) == nil)
      #expect(storage.ban(of: container) == nil)
    }
  }

  @Test("of bans at the same time, memory and database have the same one", arguments: TestStorage.all)
  func raced(kind: TestStorage) async throws {
    try await kind.with { storage in
      let container = Self.identity.container
      for _ in 0..<5 {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<40 {
            let ban = number % 3 == 0 ? nil : Ban(reason: "\(number)", sinceMilliseconds: 1)
            group.addTask { try await storage.setBan(ban, of: container, auditing: Self.entry()) }
          }
          try await group.waitForAll()
        }
        #expect(try await row(of: container, storage) == storage.ban(of: container))
      }
    }
  }

  @Test("a stream that was being opened when its player was banned ends with its next event")
  func streams() async throws {
    let folder = try TemporaryFolder()
    var configuration = ServerConfiguration(data: folder.url, port: 0)
    (configuration.adminPort, configuration.saves) = (0, TextReader())
    let service = try await CloudService(
      configuration: configuration, logger: Logger(label: "test"), stopSwitch: StopSwitch(), onRunning: { _ in })
    let routes = try #require(service.admin).routes
    let cloud = routes.cloud
    var identity = Self.identity
    identity.app = AppID(ofKey: try #require(cloud.appKeys.keys.first))
    let token = cloud.tokens.token(for: identity)
    #expect(cloud.isStillAdmitted(token))
    let ban = Ban(reason: "x", sinceMilliseconds: 1)
    try await routes.storage.setBan(ban, of: identity.container, auditing: Self.entry())
    #expect(!cloud.isStillAdmitted(token))
    try await routes.storage.setBan(nil, of: identity.container, auditing: Self.entry())
    #expect(cloud.isStillAdmitted(token))
  }
}
#endif
