#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeServer
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake app`: apps are created, listed, given new keys and revoked.
@Suite struct AppCommandTests {
  @Test("an app is created, rotated and revoked; before the first start, and for names that aren't there, it says so")
  func apps() async throws {
    let folder = try TemporaryFolder()
    let data = ["--data", folder.url.path]
    #expect(await status(of: AppListCommand.self, data) == 66)
    try Data().write(to: folder.url.appendingPathComponent(CloudFolder.databaseName))
    #expect(await status(of: AppListCommand.self, data) == 0)
    #expect(await status(of: AppCreateCommand.self, data + ["--name", "dungeon"]) == 0)
    #expect(await status(of: AppCreateCommand.self, data + ["--name", "dungeon", "--json"]) == 64)
    #expect(await status(of: AppCreateCommand.self, data + ["--name", "a name with spaces"]) == 64)
    #expect(await status(of: AppRotateCommand.self, data + ["--name", "dungeon", "--json"]) == 0)
    #expect(await status(of: AppRotateCommand.self, data + ["--name", "kingdom"]) == 66)
    let registry = try AppRegistry(data: folder.url)
    let keys = try #require(try registry.list().first).keys
    #expect(keys.count == 2)
    #expect(await status(of: AppRevokeCommand.self, data + ["--name", "dungeon", "--key", keys[0].id]) == 0)
    #expect(await status(of: AppRevokeCommand.self, data + ["--name", "dungeon", "--key", keys[0].id]) == 66)
    #expect(await status(of: AppRevokeCommand.self, data + ["--name", "dungeon", "--key", keys[1].id]) == 64)
    #expect(await status(of: AppRevokeCommand.self, data + ["--name", "dungeon", "--json"]) == 0)
    #expect(try registry.list().first?.revokedMilliseconds != nil)
    #expect(await status(of: AppListCommand.self, data + ["--json"]) == 0)
  }

  @Test("an app takes over the key in a file, and prints none")
  func keyFile() async throws {
    let folder = try TemporaryFolder()
    let data = ["--data", folder.url.path]
    try Data().write(to: folder.url.appendingPathComponent(CloudFolder.databaseName))
    let file = folder.url.appendingPathComponent("app-key")
    let named = data + ["--name", "dungeon", "--key-file", file.path]
    #expect(await status(of: AppCreateCommand.self, named) == 66)
    try Data("one key\nand another\n".utf8).write(to: file)
    #expect(await status(of: AppCreateCommand.self, named) == 64)
    try Data("app_as_generated\n".utf8).write(to: file)
    #expect(await status(of: AppCreateCommand.self, named + ["--json"]) == 0)
    #expect(try AppRegistry(data: folder.url).list().first?.keys.count == 1)
  }

  @Test("a team shares a container with its apps, to use or only to read, and takes it back")
  func teams() async throws {
    let folder = try TemporaryFolder()
    let data = ["--data", folder.url.path]
    try Data().write(to: folder.url.appendingPathComponent(CloudFolder.databaseName))
    let registry = try AppRegistry(data: folder.url)
    for name in ["dungeon", "atlas", "pinball"] { _ = try registry.create(name) }
    #expect(await status(of: TeamAddCommand.self, data + ["studio", "dungeon"]) == 66)
    #expect(await status(of: TeamCreateCommand.self, data + ["studio"]) == 0)
    #expect(await status(of: TeamCreateCommand.self, data + ["studio"]) == 64)
    #expect(await status(of: TeamCreateCommand.self, data + ["arcade"]) == 0)
    for app in ["dungeon", "atlas"] { #expect(await status(of: TeamAddCommand.self, data + ["studio", app]) == 0) }
    #expect(await status(of: TeamAddCommand.self, data + ["arcade", "atlas"]) == 64, "it is in another team")
    for name in ["studio.coins", "hero"] {
      #expect(await status(of: TeamShareCommand.self, data + ["studio", name]) == 0)
    }
    for name in ["studio.coins", "Coins", "con", "-a", ".a", "a.", "a/b", ""] {
      #expect(await status(of: TeamShareCommand.self, data + ["studio", "--", name]) == 64, "\(name)")
    }
    func grant(_ app: String, _ more: String...) async -> Int32 {
      await status(of: TeamGrantCommand.self, data + ["studio", "studio.coins", app] + more)
    }
    #expect(await grant("dungeon") == 0)
    #expect(await grant("atlas", "--read-only") == 0)
    #expect(await grant("pinball") == 66, "it is in no team")
    let teams = try registry.teams()
    #expect(teams.map(\.name) == ["studio", "arcade"] && teams[0].shares.map(\.name) == ["studio.coins", "hero"])
    #expect(teams[0].shares[0].access.map(\.access) == [.readWrite, .readOnly])
    #expect(await status(of: TeamListCommand.self, data + ["--json"]) == 0)
    #expect(await status(of: TeamWithdrawCommand.self, data + ["studio", "studio.coins", "dungeon"]) == 0)
    #expect(await status(of: TeamRemoveCommand.self, data + ["studio", "atlas"]) == 0)
    #expect(try registry.teams()[0].shares[0].access.map(\.access) == [nil, nil])
    #expect(try registry.list().map(\.team) == ["studio", nil, nil])
  }
}
#endif
