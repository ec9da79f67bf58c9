import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

@testable import Keepsake

/// A folder and its copy on the same machine, with one credential store.
@Suite struct CopiedCredentialsTests {
  let folder: TemporaryFolder
  let store = MemoryCredentials()

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createDirectory(at: original, withIntermediateDirectories: true)
  }

  private var original: URL { folder.url.appendingPathComponent("original") }
  private var copy: URL { folder.url.appendingPathComponent("copy") }

  private static func contents(
    _ number: UInt64, token: String = "a token", isJoining: Bool = false
  ) throws -> CloudFile.Contents {
    CloudFile.Contents(
      credentials: CloudCredentials(
        url: try #require(URL(string: "http://127.0.0.1:1/")), device: DeviceID(high: 0, low: number),
        player: PlayerID(high: 0, low: number), container: ContainerID(high: 0, low: number), token: token),
      isJoining: isJoining)
  }

  private func file(_ url: URL, _ credentials: CredentialStorage? = nil) -> CloudFile {
    CloudFile(in: url, of: nil, credentials ?? .store(store))
  }

  private func makeCopy() throws { try FileManager.default.copyItem(at: original, to: copy) }

  private func isLost(_ url: URL) throws -> Bool { if case .lost = try file(url).state() { true } else { false } }

  private func device(_ url: URL) throws -> DeviceID? { try file(url).read()?.credentials.device }

  @Test("a copy whose original has joined another player has lost its credentials, and joins nobody by itself")
  func originalJoins() throws {
    try file(original).write(Self.contents(1))
    try makeCopy()
    #expect(try device(copy) == DeviceID(high: 0, low: 1))
    try file(original).write(Self.contents(2, isJoining: true))
    #expect(try isLost(copy) && file(original).read()?.isJoining == true)
    try file(original).write(Self.contents(2))
    #expect(try isLost(copy) && file(original).read()?.isJoining == false)
    // When it has joined, each has its own.
    try file(copy).write(Self.contents(3, isJoining: true))
    #expect(try file(copy).read()?.isJoining == true && device(original) == DeviceID(high: 0, low: 2))
    #expect(store.entries.count == 2)
  }

  @Test("a copy that joins another player, or whose token is renewed, leaves the original its token")
  func copyWrites() throws {
    try file(original).write(Self.contents(1))
    try makeCopy()
    try file(copy).write(Self.contents(1, token: "another token"))
    #expect(try file(original).read()?.credentials.token == "a token")
    #expect(try file(copy).read()?.credentials.token == "another token" && store.entries.count == 2)
    try file(copy).write(Self.contents(2, isJoining: true))
    try file(copy).write(Self.contents(2))
    #expect(try device(original) == DeviceID(high: 0, low: 1) && device(copy) == DeviceID(high: 0, low: 2))
    #expect(store.entries.count == 2)
  }

  @Test("what is removed with a copy is its own entry, never the original's")
  func removal() throws {
    try file(original).write(Self.contents(1))
    try makeCopy()
    try GameData.removeCredentials(at: copy, from: .store(store))
    #expect(try device(original) == DeviceID(high: 0, low: 1))
    try file(copy).write(Self.contents(1, token: "another token"))
    try GameData.removeCredentials(at: copy, from: .store(store))
    #expect(try isLost(copy) && file(original).read()?.credentials.token == "a token")
    try GameData.removeCredentials(at: original, from: .store(store))
    #expect(store.entries.isEmpty)
  }

  @Test("a folder that was moved keeps its entry")
  func moved() throws {
    try file(original).write(Self.contents(1))
    try FileManager.default.moveItem(at: original, to: copy)
    try file(copy).write(Self.contents(1, token: "another token"))
    #expect(store.entries.count == 1)
    try GameData.removeCredentials(at: copy, from: .store(store))
    #expect(store.entries.isEmpty)
  }

  @Test("a copy made while the original joined a player joins that player, too, whenever it connects")
  func copiedWhileJoining() throws {
    try file(original).write(Self.contents(1))
    try file(original).write(Self.contents(2, isJoining: true))
    try makeCopy()
    try file(original).write(Self.contents(2))
    #expect(try file(original).read()?.isJoining == false)
    #expect(try device(copy) == DeviceID(high: 0, low: 2) && file(copy).read()?.isJoining == true)
  }

  @Test("a join whose credentials can't be stored changes nothing, also if one before is still in progress")
  func joinFails() throws {
    try file(original).write(Self.contents(1))
    for number in [UInt64(1), 2] {
      if number == 2 { try file(original).write(Self.contents(2, isJoining: true)) }
      store.faults.value = [.write]
      #expect(storeErrorCode { try file(original).write(Self.contents(3, isJoining: true)) } == .io)
      store.faults.value = []
      #expect(try device(original) == DeviceID(high: 0, low: number))
      #expect(try file(original).read()?.isJoining == (number == 2))
    }
  }

  @Test("a copy takes nothing out of the store that the game used before")
  func moves() throws {
    try file(original).write(Self.contents(1))
    try makeCopy()
    try file(copy, .folder.moving(from: store)).move()
    #expect(try CloudFile(in: copy, of: nil, .folder).read() != nil && device(original) == DeviceID(high: 0, low: 1))
  }
}
