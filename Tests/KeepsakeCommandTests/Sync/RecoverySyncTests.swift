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
      let second = try state.nextCode(after: code, at: server.url)
      let device = try await account.recover(code, next: second, name: "here").device
      #expect(try Self.code(in: try await unanswered.sync(recovery: code)) == second)
      #expect(try state.credentials()?.device == device, "the same device, not another one")

      // It has arrived, and nobody has seen the code.
      let unseen = try SyncFolder(server)
      let other = try SyncState(folder: unseen.root.path, named: nil)
      let third = try other.nextCode(after: second, at: server.url)
      try other.keep(try await account.recover(second, next: third, name: "here"))
      #expect(try Self.code(in: try await unseen.sync(recovery: second)) == third)
      #expect(try unseen.files() == ["main.sav": "level 7"])
    }
  }

  @Test("after a lost response, neither another code nor a run without --recover loses the code that is in force")
  func otherCode() async throws {
    try await SyncSessionTests.withServer { server in
      let lost = try SyncFolder(server)
      try lost.write("level 7", to: "main.sav")
      let code = try Self.code(in: try await lost.sync(makesCode: true))
      let account = HTTPAccount(url: server.url, appKey: try #require(server.appKeys.first))
      let unanswered = try SyncFolder(server)
      let state = try SyncState(folder: unanswered.root.path, named: nil)
      let next = try state.nextCode(after: code, at: server.url)
      let device = try await account.recover(code, next: next, name: "here").device

      var source = SystemRandomNumberGenerator()
      let other = RecoveryCode(using: &source)
      #expect(await failure { try await unanswered.sync(recovery: other) }?.kind == .permission)
      let without = await failure { try await unanswered.sync() }
      #expect(without?.kind == .data && without?.next?.contains("--recover") == true)
      #expect(try state.credentials() == nil, "no other player")
      #expect(try Self.code(in: try await unanswered.sync(recovery: code)) == next)
      #expect(try state.credentials()?.device == device)
      #expect(try unanswered.files() == ["main.sav": "level 7"])
      #expect(try !state.hasUnseenCodes())
    }
  }

  @Test("of the codes that nobody has seen, the one in force is shown, whoever has put it there, and no void one")
  func inForce() async throws {
    try await SyncSessionTests.withServer { server in
      let phone = try SyncFolder(server)
      let code = try Self.code(in: try await phone.sync(makesCode: true))
      let state = try SyncState(folder: phone.root.path, named: nil)
      let credentials = try #require(try state.credentials())

      // Killed before the request, or before its response.
      let unsent = try state.newCode(at: server.url)
      #expect(try await phone.sync().allSatisfy { $0["recoveryCode"] == nil }, "the one on paper is in force")
      #expect(try !state.hasUnseenCodes())
      let unseen = try state.newCode(at: server.url)
      try await HTTPAccount.setRecoveryCode(unseen, for: credentials)
      #expect(try Self.code(in: try await phone.sync()) == unseen && unseen != unsent)

      // Unseen here, and replaced by another device since.
      let void = try state.newCode(at: server.url)
      try await HTTPAccount.setRecoveryCode(void, for: credentials)
      var source = SystemRandomNumberGenerator()
      let newer = RecoveryCode(using: &source)
      try await HTTPAccount.setRecoveryCode(newer, for: credentials)
      #expect(try await phone.sync().allSatisfy { $0["recoveryCode"] == nil }, "it is void")
      #expect(code != newer)

      // The response is lost, and then the device joins by a pairing code.
      let tablet = try SyncFolder(server)
      let other = try SyncState(folder: tablet.root.path, named: nil)
      let next = try other.nextCode(after: newer, at: server.url)
      let account = HTTPAccount(url: server.url, appKey: try #require(server.appKeys.first))
      _ = try await account.recover(newer, next: next, name: "lost")
      // A mistyped server knows nothing of it, which says nothing.
      try other.forgetNextCode(after: newer, at: try #require(URL(string: "http://elsewhere.example")))
      let pairing = try await HTTPAccount.pairingCode(for: credentials).code
      #expect(try Self.code(in: try await tablet.sync(join: pairing)) == next)
      #expect(try !other.hasUnseenCodes())
    }
  }

  @Test("a file with the next code that can't be understood is told, and not taken for none")
  func damaged() async throws {
    try await SyncSessionTests.withServer { server in
      let folder = try SyncFolder(server)
      try await folder.sync()
      let file = folder.state.appendingPathComponent("recovery.json")
      let used = String(repeating: "0", count: 64)
      for text in ["{", "[]", #"{"format": 1}"#, #"{"codes": [{"used": "\#(used)", "next": "x", "url": "u"}]}"#] {
        try Data(text.utf8).write(to: file)
        let told = await failure { try await folder.sync() }
        #expect(told?.kind == .data && told?.message.contains(file.path) == true, "\(text)")
        #expect(try Data(contentsOf: file) == Data(text.utf8))
      }
    }
  }

  @Test("the file of a newer release is refused and left alone; one without a format is of the first")
  func formats() async throws {
    try await SyncSessionTests.withServer { server in
      let (folder, empty) = (try SyncFolder(server), try SyncFolder(server))
      try await folder.sync()
      for one in [folder, empty] {
        try FileManager.default.createDirectory(at: one.state, withIntermediateDirectories: true)
        let file = one.state.appendingPathComponent("recovery.json")
        for text in [#"{"format": 2, "codes": []}"#, #"{"format": 2, "sealed": "x"}"#] {
          try Data(text.utf8).write(to: file)
          #expect(await failure { try await one.sync() }?.kind == .newer, "\(text)")
          #expect(try Data(contentsOf: file) == Data(text.utf8))
        }
      }
      #expect(try SyncState(folder: empty.root.path, named: nil).credentials() == nil)

      var source = SystemRandomNumberGenerator()
      let (code, file) = (RecoveryCode(using: &source), folder.state.appendingPathComponent("recovery.json"))
      let text = #"{"codes": [{"used": "\#(code.digest)", "next": "\#(code.text)", "url": "http://a.example"}]}"#
      try Data(text.utf8).write(to: file)
      #expect(try await folder.sync().allSatisfy { $0["recoveryCode"] == nil }, "it isn't in force")
      #expect(try SyncState(folder: folder.root.path, named: nil).hasUnseenCodes(), "it may be somebody else's")
      // As it is written.
      let state = try SyncState(folder: empty.root.path, named: nil)
      try FileManager.default.removeItem(at: empty.state.appendingPathComponent("recovery.json"))
      _ = try state.nextCode(after: code, at: server.url)
      let written = try Data(contentsOf: empty.state.appendingPathComponent("recovery.json"))
      let object = try #require(try JSONSerialization.jsonObject(with: written) as? [String: Any])
      #expect(object["format"] as? Int == 1 && Set(object.keys) == ["codes", "format"])
    }
  }

  @Test("a code whose making wasn't confirmed may be in force: the failure says that the one from before may be void")
  func noAnswer() async throws {
    let server = try CannedServer { head, _ in
      head.hasPrefix("POST /v1/devices ") ? .registered(as: 10) : .http("500 X", body: "down")
    }
    defer { server.stop() }
    let folder = try SyncFolder(shared: TemporaryFolder.url("unused"))
    let told = await failure {
      try await folder.sync(makesCode: true, with: .server(server.url, appKey: "an-app-key", entry: .register))
    }
    #expect(told?.kind == .unavailable && told?.next?.contains("--new-recovery-code") == true)
  }

  @Test("a code that could not be printed is printed by the next run, and only by that")
  func notPrinted() async throws {
    try await RunningCloud.with { cloud, root in
      let common = ["--cloud", cloud.url, "--app-key", cloud.appKey, "--once", "--interval", "20", "--settle", "40"]
      func sync(_ name: String, _ words: [String] = [], by runner: [String] = []) throws
        -> TestSupport.ChildProcess.Ended
      {
        let folder = root.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return try Tool.run(["sync", folder.path, "--json"] + common + words, by: runner)
      }
      func code(_ ended: TestSupport.ChildProcess.Ended) -> String? {
        ended.text.firstMatch(of: /"recoveryCode":"([0-9A-Z-]+)"/).map { String($0.1) }
      }
      let first = try #require(code(try sync("lost", ["--new-recovery-code"])))
      let typed = root.appendingPathComponent("typed")
      try Data((first.lowercased() + "\n").utf8).write(to: typed)
      let full = ["/bin/sh", "-c", "exec \"$@\" < \"$0\" > /dev/full", typed.path]
      let unseen = try sync("new", ["--recover"], by: full)
      #expect(unseen.status == 74, "\(unseen.errors)")
      let next = try #require(code(try sync("new")))
      #expect(next != first)
      #expect(code(try sync("new")) == nil)
      // It is in force. Of two new codes, the one that is printed is.
      try Data((next + "\n").utf8).write(to: typed)
      let input = ["/bin/sh", "-c", "exec \"$@\" < \"$0\"", typed.path]
      let third = try sync("third", ["--recover", "--new-recovery-code"], by: input)
      #expect(third.status == 0 && third.text.matches(of: /recoveryCode/).count == 1, "\(third.errors)")
      try Data((try #require(code(third)) + "\n").utf8).write(to: typed)
      #expect(try sync("fourth", ["--recover"], by: input).status == 0)
      // So is a new one that couldn't be printed, and one that nobody has read.
      #expect(try sync("fourth", ["--new-recovery-code"], by: full).status == 74)
      let fifth = try #require(code(try sync("fourth")))
      let closed = """
        p=$(mktemp -u) && mkfifo "$p" && exec 3<>"$p" 4>"$p" && rm "$p" && exec 3<&- && exec "$@" >&4 4>&-
        """
      #expect(try sync("fourth", ["--new-recovery-code"], by: ["/bin/sh", "-c", closed, "sh"]).status == 74)
      let sixth = try #require(code(try sync("fourth")))
      try Data((sixth + "\n").utf8).write(to: typed)
      #expect(try sync("sixth", ["--recover"], by: input).status == 0 && fifth != sixth)
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
