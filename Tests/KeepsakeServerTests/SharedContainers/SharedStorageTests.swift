#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Requests about shared containers that were admitted before something else was committed.
@Suite("Shared containers in the database", .hangLimit) struct SharedStorageTests {
  private static let app = AppID(ofKey: "an app key")
  private static let grant = SharedGrant(app: app, share: AppID(word: 7), access: .readWrite)

  private func device(_ number: UInt64, _ app: AppID) -> DeviceIdentity {
    DeviceIdentity(
      device: DeviceID(high: number, low: 1), player: PlayerID(high: number, low: 2),
      container: ContainerID(high: number, low: 3), app: app)
  }

  @Test(
    "a device whose player was just banned in the game gets no further one by signing in to a shared container",
    arguments: TestStorage.all)
  func bannedMeanwhile(kind: TestStorage) async throws {
    try await kind.with { storage in
      var shared: [DeviceIdentity] = []
      for number: UInt64 in [1, 2] {
        let parent = device(number, Self.app)
        try await storage.recordDevice(
          DeviceRecord(identity: parent, name: "", createdMilliseconds: 1, seenMilliseconds: 1))
        shared.append(
          try await storage.registerShared(
            device(number + 10, Self.grant.id), named: "", by: EntryRight(Self.grant, of: parent), now: 1))
      }
      let login = VerifiedIdentity(id: VerifiedIdentity.id(of: "ada", at: "", named: "login"), issuer: "login")
      let ada = login.scoped(to: Self.grant.share)
      #expect(
        try await storage.link(ada, to: shared[0], now: 1)
          == .linked(LinkedIdentity(id: ada.id, issuer: "login", createdMilliseconds: 1)))
      let new = NewDevice(device: DeviceID(high: 9, low: 9), name: "")
      try await storage.setBan(
        Ban(reason: "x", sinceMilliseconds: 1), of: device(2, Self.app).container,
        auditing: AuditEntry(atMilliseconds: 5, key: "k", name: "ada", act: "player.ban", request: "r"))
      await #expect {
        try await storage.signIn(with: ada, by: shared[1], as: new, now: 1)
      } throws: {
        ($0 as? APIError)?.code == .banned
      }
      #expect(try await storage.devices(of: shared[0].container).map(\.identity.device) == [shared[0].device])
    }
  }

  @Test(
    "a device that was just removed from its game gets no device in a shared container",
    arguments: TestStorage.all)
  func removedMeanwhile(kind: TestStorage) async throws {
    try await kind.with { storage in
      let parent = device(1, Self.app)
      try await storage.recordDevice(
        DeviceRecord(identity: parent, name: "", createdMilliseconds: 1, seenMilliseconds: 1))
      _ = try await storage.retire(parent.device, of: parent.container, now: 2)
      await #expect {
        _ = try await storage.registerShared(
          device(11, Self.grant.id), named: "", by: EntryRight(Self.grant, of: parent), now: 3)
      } throws: {
        ($0 as? APIError)?.code == .retired
      }
      #expect(try await storage.sharedContainers(of: parent.container).isEmpty)
    }
  }

  @Test(
    "a device whose player was just deleted hears that, and not that its code is nobody's",
    arguments: TestStorage.all)
  func deletedMeanwhile(kind: TestStorage) async throws {
    try await kind.with { storage in
      let parent = device(1, Self.app)
      try await storage.recordDevice(
        DeviceRecord(identity: parent, name: "", createdMilliseconds: 1, seenMilliseconds: 1))
      let right = EntryRight(Self.grant, of: parent)
      let purse = try await storage.registerShared(device(11, Self.grant.id), named: "", by: right, now: 2)
      let (code, pairing) = (ContentHash(of: Data("code".utf8)), Data("pairing".utf8))
      try await storage.putRecovery(code, by: purse, scope: right.scope, now: 2)
      try await storage.putPairing(
        Pairing(
          code: pairing, scope: right.scope, player: purse.player, container: purse.container,
          expiresMilliseconds: 1_000),
        for: purse.device, now: 2)
      _ = try await storage.delete(parent.container, now: 3)
      let new = DeviceID(high: 9, low: 9)
      let next = ContentHash(of: Data("next".utf8))
      await #expect {
        _ = try await storage.recover(
          Recovery(code: code, next: next, right: right, name: ""), as: new, now: 4, mayRecover: { $0 == right.scope })
      } throws: {
        ($0 as? APIError)?.code == .retired
      }
      await #expect {
        _ = try await storage.join(pairing, by: right, as: new, name: "", now: 4)
      } throws: {
        ($0 as? APIError)?.code == .retired
      }
    }
  }

  @Test(
    "of two devices that somebody removes together, neither keeps the container for their player",
    arguments: TestStorage.all)
  func removedTogether(kind: TestStorage) async throws {
    try await kind.with { storage in
      let parent = device(1, Self.app)
      try await storage.recordDevice(
        DeviceRecord(identity: parent, name: "", createdMilliseconds: 1, seenMilliseconds: 1))
      func next(_ number: UInt64) async throws -> DeviceIdentity {
        try await storage.registerShared(
          device(number, Self.grant.id), named: "", by: EntryRight(Self.grant, of: parent), now: 3)
      }
      for round in 0..<20 as Range<UInt64> {
        let (one, other) = (try await next(100 + 4 * round), try await next(101 + 4 * round))
        #expect(one.container == other.container)
        async let first = storage.retire(one.device, of: one.container, leavesShared: true, now: 4)
        async let second = storage.retire(other.device, of: one.container, leavesShared: true, now: 4)
        _ = try await (first, second)
        // One that leaves by itself comes back to what it had.
        let third = try await next(102 + 4 * round)
        #expect(third.container != one.container)
        _ = try await storage.retire(third.device, of: third.container, isLeaving: true, now: 4)
        let fourth = try await next(103 + 4 * round)
        #expect(fourth.container == third.container)
        _ = try await storage.retire(fourth.device, of: fourth.container, leavesShared: true, now: 4)
      }
    }
  }
}
#endif
