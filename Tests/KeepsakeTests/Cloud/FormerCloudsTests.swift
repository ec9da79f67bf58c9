import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

@testable import Keepsake

/// The credentials that a device keeps of clouds that it has left.
@Suite struct FormerCloudsTests {
  private static func credentials(_ number: UInt64) throws -> CloudCredentials {
    CloudCredentials(
      url: try #require(URL(string: "http://127.0.0.1:1/")), device: DeviceID(high: 0, low: number),
      player: PlayerID(high: 0, low: number), container: ContainerID(high: 0, low: number), token: "token \(number)")
  }

  @Test("credentials are added once, found by their container, and removed when nothing needs them")
  func keeps() throws {
    let folder = try TemporaryFolder()
    let clouds = FormerClouds(in: folder.url, of: nil, .folder)
    #expect(try clouds.all().isEmpty)
    let (one, two) = (try Self.credentials(1), try Self.credentials(2))
    for _ in 1...2 { try clouds.add([one, two]) }
    #expect(try clouds.all() == [one, two])
    #expect(try clouds.credentials(for: two.container) == two)
    #expect(try clouds.credentials(for: ContainerID(high: 0, low: 3)) == nil)
    try clouds.keep(for: [two.container])
    #expect(try clouds.all() == [two])
    try clouds.keep(for: [])
    #expect(try clouds.all().isEmpty)
  }

  @Test("a file that isn't one is reported, and stays as it is")
  func damaged() throws {
    let folder = try TemporaryFolder()
    let file = folder.url.appendingPathComponent(FormerClouds.name)
    try Data("no list".utf8).write(to: file)
    let clouds = FormerClouds(in: folder.url, of: nil, .folder)
    let error = #expect(throws: StoreError.self) { try clouds.all() }
    #expect(error?.code == .damaged)
    #expect(throws: StoreError.self) { try clouds.add([Self.credentials(1)]) }
    #expect(try Data(contentsOf: file) == Data("no list".utf8))
  }

  @Test("only the user may read the tokens")
  func isPrivate() throws {
    let folder = try TemporaryFolder()
    try FormerClouds(in: folder.url, of: nil, .folder).add([Self.credentials(1)])
    let file = folder.url.appendingPathComponent(FormerClouds.name)
    let permissions = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
    #expect(permissions == 0o600)
  }

  @Test("the credentials that a device still has at its cloud serve as well, unless they are another player's")
  func current() throws {
    let folder = try TemporaryFolder()
    let banks = FormerBanks(folder: folder.url, store: nil, environment: .system, storage: .folder)
    let one = try Self.credentials(1)
    #expect(try banks.credentials(for: one.container) == nil)
    try CloudFile(in: folder.url, of: nil, .folder).write(CloudFile.Contents(credentials: one))
    #expect(try banks.credentials(for: one.container) == one && banks.cloud(of: one.container, appKey: nil) != nil)
    try CloudFile(in: folder.url, of: nil, .folder).write(CloudFile.Contents(credentials: one, isJoining: true))
    #expect(try banks.credentials(for: one.container) == nil)
  }
}
