#if Cloud
import Foundation
import KeepsakeServer
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake secret`: secrets are rotated, listed and forgotten.
@Suite struct SecretCommandTests {
  @Test("a secret is rotated and earlier ones are forgotten; before the first start there is none")
  func secrets() async throws {
    let folder = try TemporaryFolder()
    let data = ["--data", folder.url.path]
    #expect(await status(of: SecretRotateCommand.self, data) == 66)
    #expect(await status(of: SecretListCommand.self, data) == 66)
    try Data().write(to: folder.url.appendingPathComponent(CloudFolder.databaseName))
    #expect(await status(of: SecretRotateCommand.self, data) == 66)
    // As an earlier release wrote it.
    try Data(repeating: 1, count: 32).write(to: folder.url.appendingPathComponent("secret"))
    #expect(await status(of: SecretRotateCommand.self, data + ["--json"]) == 0)
    #expect(await status(of: SecretRotateCommand.self, data) == 0)
    let secrets = try ServerSecrets(data: folder.url)
    #expect(try secrets.ages().count == 3)
    #expect(await status(of: SecretListCommand.self, data) == 0)
    #expect(await status(of: SecretListCommand.self, data + ["--json"]) == 0)
    #expect(await status(of: SecretForgetCommand.self, data) == 0)
    #expect(try secrets.ages().count == 1)
    for _ in 0..<20 { _ = try secrets.rotate(now: 0) }
    #expect(try secrets.ages().count == 8)
    #expect(await status(of: SecretForgetCommand.self, ["--data", folder.url.path + "/nowhere"]) == 66)
  }
}
#endif
