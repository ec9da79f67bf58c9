#if Cloud && PostgreSQL
import Foundation
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

/// Players of a storage, who count what was acknowledged.
final class MoveWriters: Sendable {
  private struct Content {
    var container: ContainerID
    var hash: ContentHash
    var bytes: Data
  }
  private let storage: SQLiteCloudStorage
  private let containers: Int
  private let gems = Mutex<[UInt64: UInt64]>([:])
  private let contents = Mutex<[Content]>([])
  private let isEnding = Shared(false)

  init(_ storage: SQLiteCloudStorage, containers: Int) { (self.storage, self.containers) = (storage, containers) }

  static func container(_ number: UInt64) -> ContainerID { ContainerID(high: 11, low: number) }

  func acknowledged(_ number: UInt64) -> UInt64 { gems.withLock { $0[number] ?? 0 } }

  /// Something of each player, and a few large contents.
  func fill() async throws {
    for number in 0..<UInt64(containers) {
      try await add(number)
      let identity = DeviceIdentity(
        device: DeviceID(high: 12, low: number), player: PlayerID(high: 13, low: number),
        container: Self.container(number), app: AppID(ofKey: "a game"))
      try await storage.recordDevice(
        DeviceRecord(identity: identity, name: "A\u{0}", createdMilliseconds: 5, seenMilliseconds: 5))
      if number < 2 { try await put(number, seed: number) }
    }
  }

  private func add(_ number: UInt64) async throws {
    try await storage.addGem(to: Self.container(number), mark: number)
    gems.withLock { $0[number, default: 0] += 1 }
  }

  private func put(_ number: UInt64, seed: UInt64) async throws {
    let bytes = saveBytes(ServerLimits.inlineContentBytes + 1_000, seed: seed)
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("move-\(UUID().uuidString)")
    try bytes.write(to: file)
    let hash = ContentHash(of: bytes)
    let kept = KeptContent(hash: hash, length: bytes.count, base: nil, bytes: .file(file, count: bytes.count))
    _ = try await storage.putContent(kept, of: Self.container(number), quota: nil)
    contents.withLock { $0.append(Content(container: Self.container(number), hash: hash, bytes: bytes)) }
  }

  /// Writes so many times, to any players.
  func write(_ count: Int) async throws {
    for _ in 0..<count { try await add(.random(in: 0..<UInt64(containers))) }
  }

  /// Has players play until `body` is done, or they are refused.
  func playing<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for player in 0..<4 as Range<UInt64> {
        group.addTask {
          var number: UInt64 = 0
          do {
            while !self.isEnding.value {
              number += 1
              try await self.write(1)
              if number % 50 == 0 { try await self.put(player, seed: 100 * number + player) }
            }
          } catch {
            // Nothing but the fence may refuse anybody.
            guard CloudFence.isRefusal(error) else { throw error }
          }
        }
      }
      let result: Swift.Result<Result, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      isEnding.value = true
      try await group.waitForAll()
      return try result.get()
    }
  }

  /// Sees that the database has what was acknowledged, and nothing else.
  func check(_ lab: MoveLab) async throws {
    let storage = try await TestDatabase.storage(at: lab.address)
    for number in 0..<UInt64(containers) {
      let container = Self.container(number)
      let counted = acknowledged(number)
      #expect(try await storage.newestSeq(of: container) == counted, "\(number)")
      let gems = try await storage.decide(on: container) { try $0.bank().pool["gems"] ?? 0 }
      #expect(gems == Int64(counted), "\(number)")
      #expect(try await storage.devices(of: container).map(\.name) == ["A\u{0}"])
    }
    #expect(try lab.count("container") == Int64(containers))
    let contents = contents.withLock(\.self)
    #expect(!contents.isEmpty)
    for content in contents {
      let kept = try #require(try await storage.content(content.hash, of: content.container))
      let read = try await kept.bytes.reader()
      #expect(try read() == content.bytes)
    }
    try await storage.close()
  }
}
#endif
