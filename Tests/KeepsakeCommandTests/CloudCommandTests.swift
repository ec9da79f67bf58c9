#if Cloud
import Foundation
import KeepsakeServer
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake cloud backup`, `verify` and `restore`: their exit statuses.
@Suite("keepsake cloud", .hangLimit) struct CloudCommandTests {
  @Test("a backup is made, verified and restored, and each refusal has its status")
  func statuses() async throws {
    try await TemporaryFolder.with { folder in
      func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
      let running = Task {
        try await KeepsakeServer.run(
          configuration: ServerConfiguration(data: folder.appendingPathComponent("data"), port: try TestPort.unused()),
          signals: []
        ) { $0.stop() }
      }
      try await running.value
      let (data, file) = (path("data"), path("backup"))
      #expect(await status(of: CloudBackupCommand.self, ["--data", path("nothing"), "--to", file]) == 66)
      #expect(await status(of: CloudBackupCommand.self, ["--data", data, "--to", file]) == 0)
      #expect(await status(of: CloudBackupCommand.self, ["--data", data, "--to", file]) == 73)
      #expect(await status(of: CloudBackupCommand.self, ["--data", data, "--to", file, "--force", "--json"]) == 0)
      #expect(await status(of: CloudBackupCommand.self, ["--data", data, "--to", path("no/folder/backup")]) == 66)
      #expect(await status(of: CloudVerifyCommand.self, ["--from", file]) == 0)
      #expect(await status(of: CloudVerifyCommand.self, ["--from", file, "--json"]) == 0)
      #expect(await status(of: CloudVerifyCommand.self, ["--from", path("nothing")]) == 66)
      #expect(await status(of: CloudRestoreCommand.self, ["--from", file, "--data", data]) == 73)
      #expect(await status(of: CloudRestoreCommand.self, ["--from", file, "--data", path("restored")]) == 0)

      let bytes = try Data(contentsOf: folder.appendingPathComponent("backup"))
      try bytes.dropLast(600).write(to: folder.appendingPathComponent("cut"))
      for json in [[], ["--json"]] {
        #expect(
          await status(of: CloudRestoreCommand.self, ["--from", path("cut"), "--data", path("other")] + json) == 65)
      }
      #expect(!FileManager.default.fileExists(atPath: path("other")))
    }
  }

  @Test("the empty database in the folder of a server that uses PostgreSQL isn't taken for the cloud")
  func emptyDatabase() async throws {
    try await TemporaryFolder.with { folder in
      try Data().write(to: folder.appendingPathComponent(CloudFolder.databaseName))
      let data = ["--data", folder.path]
      let file = folder.appendingPathComponent("backup").path
      #expect(await status(of: CloudBackupCommand.self, data + ["--to", file]) == 66)
      #expect(await status(of: BankRestoredCommand.self, data) == 66)
      #expect(await status(of: BankStatusCommand.self, data) == 66)
      #expect(await status(of: BankReleaseCommand.self, data + ["--all"]) == 66)
      #expect(!FileManager.default.fileExists(atPath: file))
    }
  }

  @Test("where the environment names a PostgreSQL database, no backup of the folder alone is made")
  func elsewhere() throws {
    let folder = try TemporaryFolder()
    try Data().write(to: folder.url.appendingPathComponent(CloudFolder.databaseName))
    let file = folder.url.appendingPathComponent("backup").path
    let ended = try Tool.run(
      ["cloud", "backup", "--data", folder.url.path, "--to", file],
      environment: ["KEEPSAKE_DATABASE": "postgres://db.example.com/keepsake"])
    #expect(ended.status == 64)
    #expect(!FileManager.default.fileExists(atPath: file))
  }
}
#endif
