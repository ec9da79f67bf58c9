#if Cloud
import ArgumentParser
import Foundation
import KeepsakeServer
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake bank`: server keys are created, listed and removed.
@Suite struct BankCommandTests {
  @Test("a key is created under a name, listed, and removed; a name that is used or unknown is an error")
  func keys() async throws {
    let folder = try TemporaryFolder()
    let data = ["--data", folder.url.path]
    #expect(await status(of: BankKeysCommand.self, data) == 66, "no server has run there")
    try Data().write(to: folder.url.appendingPathComponent(CloudFolder.databaseName))
    #expect(await status(of: BankKeyCommand.self, data + ["--name", "shop", "--json"]) == 0)
    #expect(await status(of: BankKeyCommand.self, data + ["--name", "support"]) == 0)
    let keys = try ServerKeys(data: folder.url)
    #expect(try keys.names() == ["shop", "support"])
    #expect(await status(of: BankKeysCommand.self, data) == 0)
    #expect(await status(of: BankKeyCommand.self, data + ["--name", "shop"]) == 64)
    #expect(await status(of: BankRemoveKeyCommand.self, data + ["--name", "shop"]) == 0)
    #expect(try keys.names() == ["support"])
    #expect(await status(of: BankRemoveKeyCommand.self, data + ["--name", "shop"]) == 66)
    let nowhere = ["--data", folder.url.appendingPathComponent("nowhere").path]
    #expect(await status(of: BankKeysCommand.self, nowhere) == 66)
    #expect(await status(of: BankKeyCommand.self, data) == 64)
  }

  @Test("serve takes names of currencies separated by commas, and refuses a list without any")
  func authoritative() throws {
    _ = try ServeCommand.parse(["--data", "cloud", "--authoritative", "gems, tickets"])
    for list in ["", ",", " , "] {
      #expect(throws: (any Error).self) { try ServeCommand.parse(["--data", "cloud", "--authoritative", list]) }
    }
  }
}
#endif
