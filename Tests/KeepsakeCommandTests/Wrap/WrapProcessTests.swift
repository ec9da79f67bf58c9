#if Cloud && os(Linux)
import Foundation
import Glibc
import TestSupport
import Testing

@testable import KeepsakeCommand

/// What a wrapped game has of its process, and how the command ends.
@Suite struct WrapProcessTests {
  @Test("a game has the same descriptors, signals and environment as without the command")
  func inherited() async throws {
    try await WrapMachine.with(["one"]) { machines in
      // Of the program itself: a shell that waits for one has all signals blocked now and then.
      let script =
        "ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; env | grep -v '^_=' | sort; pwd"
      let bare = try TestSupport.ChildProcess.run(
        URL(fileURLWithPath: "/usr/bin/env"), ["--default-signal", "/bin/sh", "-c", "cd; \(script)"],
        environment: machines[0].environment)
      let wrapped = try machines[0].play(script)
      #expect(wrapped.text == bare.text, "\(wrapped.errors)")
    }
  }

  @Test("a game gets its arguments byte for byte, also those that aren't UTF-8")
  func arguments() async throws {
    try await WrapMachine.with(["one"]) { machines in
      let game = "printf %s \"$1\" | od -An -tx1"
      let ended = try Tool.run(
        ["wrap", "--saves", "~/.game", "--", "/bin/sh", "-c", game, "game"], environment: machines[0].environment,
        by: ["sh", "-c", "exec \"$@\" \"$(printf 'a\\351\\377')\"", "sh"])
      #expect(ended.status == 0 && ended.text == " 61 e9 ff\n", "\(ended.text)\(ended.errors)")
    }
  }

  @Test("a game that a signal ends gives 128 and its number, and what can't be started a status of its own")
  func statuses() async throws {
    try await WrapMachine.with(["one"]) { machines in
      let one = machines[0]
      let killed = try one.play("kill -KILL $$")
      #expect(killed.status == 128 + SIGKILL, "\(killed.errors)")
      #expect(try one.play("kill -TERM $$").status == 128 + SIGTERM)
      #expect(try one.play("exit 255").status == 255)
      #expect(try one.run("wrap", "--saves", "~/.game", "--", "no-such-game-here").status == 66)
      #expect(try one.run("wrap", "--saves", "~/.game", "--", "/etc/passwd").status == 77)
      #expect(
        try one.run("wrap", "--", "true").status == 64 && one.run("wrap", "--saves", "~/.game", "true").status == 64)
      #expect(try one.run("wrap", "--game", "Game", "--", "true").status == 66, "there is no manifest")
      #expect(try one.run("wrap", "--saves", "~/", "--", "true").status == 65)
      #expect(try one.run("wrap", "--saves", "~", "--", "true").status == 65)
      #expect(try one.run("wrap", "--saves", "~/.local", "--", "true").status == 65)
      let reserved = try one.run("wrap", "--saves", "~/.keepsake-old", "--", "true")
      #expect(reserved.status == 65 && reserved.errors.contains("nothing in ~/.keepsake-old is kept"))
      try one.write("no program", to: "bad")
      #expect(chmod(one.saves.appending(path: "bad").path, 0o755) == 0)
      let bad = try one.run("wrap", "--saves", "~/.game", "--", one.saves.appending(path: "bad").path)
      #expect(bad.status == 65, "\(bad.errors)")
    }
  }

  @Test("saves are kept under the same slots whether their folder is named by an absolute path or from where one is")
  func relative() async throws {
    try await WrapMachine.with(["one"]) { machines in
      let one = machines[0]
      try one.write("level 0", to: "a")
      try FileManager.default.createDirectory(at: one.home.appending(path: "x"), withIntermediateDirectories: true)
      let calls = [
        (one.saves, "."), (one.home, "./.game"), (one.home, ".game/"), (one.home.appending(path: "x"), "../.game"),
        (one.home, one.home.path + "/x/../.game"), (one.home, one.saves.path),
      ]
      for (number, (folder, path)) in calls.enumerated() {
        let options = ["wrap", "--game", "Game", "--saves", path, "--interval", "20", "--settle", "40", "--"]
        let script = "printf level\(number + 1) > \"$HOME/.game/a\""
        let ended = try Tool.run(options + ["sh", "-c", script], in: folder, environment: one.environment)
        #expect(ended.status == 0 && ended.errors.contains("kept 1 version of 1 save"), "\(path): \(ended.errors)")
        #expect(try one.history("a").count == number + 2, "\(path)")
      }
    }
  }

  @Test("without a game, what was kept is counted")
  func counted() async throws {
    try await WrapMachine.with(["one"]) { machines in
      let one = machines[0]
      try one.write("level 0", to: "a")
      let options = ["wrap", "--game", "Game", "--saves", "~/.game", "--interval", "20", "--settle", "40"]
      let kept = try Tool.run(options, in: one.home, environment: one.environment)
      #expect(kept.status == 0 && kept.errors.contains("kept 1 version of 1 save"), "\(kept.errors)")
      let again = try Tool.run(options, in: one.home, environment: one.environment)
      #expect(again.status == 0 && again.errors.contains("no save changed"), "\(again.errors)")
      // The first place is left out now.
      let other = try Tool.run(
        ["wrap", "--game", "Game", "--saves", "~/.other"], in: one.home, environment: one.environment)
      #expect(other.errors.contains("1 file in the history is outside"), "\(other.errors)")
    }
  }

  @Test("the places come from the manifest in the folder of settings, and the shared folder from wrap.json")
  func settings() async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let manifest = """
        Some Game: {}
        Game:
          files:
            <home>/.game/*.sav: {tags: [save]}
            <home>/.game/settings: {tags: [config]}
        """
      for machine in machines {
        let folder = machine.home.appending(path: ".config/keepsake")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(manifest.utf8).write(to: folder.appending(path: "manifest.yaml"))
        try JSONEncoder().encode(["folder": machine.shared.path]).write(to: folder.appending(path: "wrap.json"))
      }
      func play(_ machine: WrapMachine, _ script: String) throws -> TestSupport.ChildProcess.Ended {
        try TestSupport.ChildProcess.run(
          WrapMachine.tool, ["wrap", "--game", "Game", "--settle", "40", "--", "sh", "-c", "cd; \(script)"],
          environment: machine.environment)
      }
      #expect(
        try play(machines[0], "mkdir .game; cd .game; echo 1 > a.sav; echo 2 > settings; echo 3 > log").status == 0)
      #expect(try play(machines[1], "ls .game").text == "a.sav\n")
      #expect(try machines[1].run("wrap", "--game", "Gam", "--", "true").status == 66)
      #expect(try machines[1].run("wrap", "--game", "Some Game", "--", "true").status == 66)
      try Data("Game: [".utf8).write(to: machines[1].home.appending(path: ".config/keepsake/manifest.yaml"))
      #expect(try machines[1].run("wrap", "--game", "Game", "--", "true").status == 65)
    }
  }

  @Test(
    "a signal that the command gets is passed on, and what the game saves then is kept", arguments: [SIGTERM, SIGINT])
  func passedOn(number: Int32) async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let one = machines[0]
      let process = Process()
      process.executableURL = WrapMachine.start.program
      process.arguments =
        WrapMachine.start.arguments + one.arguments([]) + [
          "sh", "-c",
          "cd; trap 'printf saved > .game/a; exit 9' TERM INT; mkdir .game; : > ready; while :; do sleep 0.05; done",
        ]
      process.environment = ProcessInfo.processInfo.environment.merging(one.environment) { $1 }
      process.standardInput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      try process.run()
      defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
      try await until("the game runs") {
        FileManager.default.fileExists(atPath: one.home.appending(path: "ready").path) || !process.isRunning
      }
      kill(process.processIdentifier, number)
      try await until("the game has ended") { !process.isRunning }
      #expect(process.terminationReason == .exit && process.terminationStatus == 9)
      #expect(try machines[1].play("cat .game/a").text == "saved")
    }
  }
}
#endif
