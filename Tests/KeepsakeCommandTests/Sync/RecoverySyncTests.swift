#if Cloud && os(Linux)
import Foundation
import KeepsakeReplication
import KeepsakeServer
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake sync --new-recovery-code` and `--recover`: a folder whose machine was lost comes back on a new one.
@Suite("keepsake sync with a recovery code", .hangLimit) struct RecoverySyncTests {
  /// The code in the only line that has one.
  private static func code(in lines: [[String: any Sendable]]) throws -> RecoveryCode {
    let codes = lines.compactMap { $0["recoveryCode"] as? String }
    #expect(codes.count == 1, "\(lines)")
    return try RecoveryCode(typed: try #require(codes.first))
  }

  private func failure(_ body: () async throws -> Void) async -> CommandFailure? {
    await #expect(throws: CommandFailure.self) {
      do { try await body() } catch { throw CommandFailure(error) }
    }
  }

  @Test("what was lost comes back, what the new folder had stays, and the next code is shown once")
  func comesBack() async throws {
    try await SyncSessionTests.withServer { server in
      let lost = try SyncFolder(server)
      try lost.write("level 7", to: "main.sav")
      let first = try Self.code(in: try await lost.sync(makesCode: true))
      // Made again, the one before is void.
      let code = try Self.code(in: try await lost.sync(makesCode: true))
      #expect(code != first)

      let new = try SyncFolder(server)
      try new.write("of the new machine", to: "own.txt")
      #expect(await failure { try await new.sync(recovery: first) }?.kind == .permission)
      let next = try Self.code(in: try await new.sync(recovery: code))
      #expect(next != code)
      #expect(try new.files() == ["main.sav": "level 7", "own.txt": "of the new machine"])
      #expect(try await new.sync().allSatisfy { $0["recoveryCode"] == nil }, "shown once")
      let again = await failure { try await new.sync(recovery: code) }
      #expect(again?.kind == .data && again?.next?.contains("--recover") == true, "it is that player's already")

      let third = try SyncFolder(server)
      #expect(await failure { try await third.sync(recovery: code) }?.kind == .permission, "it was used")
      _ = try await third.sync(recovery: next)
      #expect(try third.files() == ["main.sav": "level 7", "own.txt": "of the new machine"])
    }
  }

  @Test("a response that was lost, or a command that ended before it showed the next code, costs nothing")
  func lostResponse() async throws {
    try await SyncSessionTests.withServer { server in
      let lost = try SyncFolder(server)
      try lost.write("level 7", to: "main.sav")
      let code = try Self.code(in: try await lost.sync(makesCode: true))
      let account = HTTPAccount(url: server.url, appKey: try #require(server.appKeys.first))

      // The server has answered, and nothing has arrived.
      let unanswered = try SyncFolder(server)
      let state = try SyncState(folder: unanswered.root.path, named: nil)
      let second = try state.nextCode(after: code)
      let device = try await account.recover(code, next: second, name: "here").device
      #expect(try Self.code(in: try await unanswered.sync(recovery: code)) == second)
      #expect(try state.credentials()?.device == device, "the same device, not another one")

      // It has arrived, and nobody has seen the code.
      let unseen = try SyncFolder(server)
      let other = try SyncState(folder: unseen.root.path, named: nil)
      let third = try other.nextCode(after: second)
      try other.keep(try await account.recover(second, next: third, name: "here"))
      #expect(try Self.code(in: try await unseen.sync(recovery: second)) == third)
      #expect(try unseen.files() == ["main.sav": "level 7"])
    }
  }

  @Test("a file with the next code that can't be understood is told, and not taken for none")
  func damaged() async throws {
    try await SyncSessionTests.withServer { server in
      let folder = try SyncFolder(server)
      try await folder.sync()
      let file = folder.state.appendingPathComponent("recovery.json")
      let texts = ["{", #"{"format": 2, "used": "\(String(repeating: "0", count: 64))", "next": "x"}"#]
      for text in texts {
        try Data(text.utf8).write(to: file)
        #expect(await failure { try await folder.sync() }?.kind == .data, "\(text)")
        #expect(try Data(contentsOf: file) == Data(text.utf8))
      }
    }
  }

  @Test("the code is read from standard input, and a mistyped group is told by its number")
  func command() throws {
    let folder = try TemporaryFolder()
    let cloud = ["--cloud", "http://127.0.0.1:1", "--app-key", "some-app-key"]
    var source = SystemRandomNumberGenerator()
    let code = RecoveryCode(using: &source).text
    let wrong = (code.hasPrefix("0") ? "1" : "0") + code.dropFirst()
    func run(_ words: [String], _ input: String) throws -> TestSupport.ChildProcess.Ended {
      let typed = folder.url.appendingPathComponent("typed")
      try Data(input.utf8).write(to: typed)
      let saves = folder.url.appendingPathComponent("saves")
      try FileManager.default.createDirectory(at: saves, withIntermediateDirectories: true)
      return try Tool.run(
        ["sync", saves.path, "--once"] + words,
        by: ["/bin/sh", "-c", "exec \"$@\" < \"$0\"", typed.path])
    }
    let mistyped = try run(cloud + ["--recover"], wrong + "\n")
    #expect(mistyped.status == 65 && mistyped.errors.contains("group 1"), "\(mistyped.errors)")
    #expect(try run(cloud + ["--recover"], "").status == 66)
    #expect(try run(cloud + ["--recover"], code + "\n").status == 69, "the server can't be reached")
    #expect(try run(["--folder", folder.url.path, "--recover"], code).status == 64)
    #expect(try run(["--folder", folder.url.path, "--new-recovery-code"], code).status == 64)
    #expect(try run(cloud + ["--join", "CODE", "--recover"], code).status == 64)
  }
}
#endif
