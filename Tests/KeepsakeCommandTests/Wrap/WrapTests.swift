#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake wrap` on machines that share a folder, with shells as games.
@Suite struct WrapTests {
  @Test("a save reaches the other machine before its game starts, and the game's output and exit status are its own")
  func machines() async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let (one, two) = (machines[0], machines[1])
      let first = try one.play("mkdir .game; printf level1 > .game/a; cat; echo out; echo err >&2; exit 7", input: "in")
      #expect(first.status == 7 && first.text == "inout\n", "\(first.errors)")
      #expect(first.errors == "err\nkeepsake: kept 1 version of 1 save; uploaded\n")
      let second = try two.play("cat .game/a; printf level2 > .game/a")
      #expect(second.status == 0 && second.text == "level1")
      #expect(second.errors == "keepsake: received 1 save\nkeepsake: kept 1 version of 1 save; uploaded\n")
      let third = try one.play("cat .game/a; touch .game/a; printf level2 > .game/a")
      #expect(third.text == "level2" && third.errors.hasSuffix("no save changed; everything is uploaded\n"))
      #expect(try one.history("a").count == 2, "the same bytes are no version")
    }
  }

  @Test("every state that stays for a moment is kept while the game runs")
  func versions() async throws {
    try await WrapMachine.with(["one"]) { machines in
      let one = machines[0]
      // The game goes on when the state before was kept.
      let ended = try one.play(
        """
        mkdir .game; for i in 1 2 3; do printf state$i > .game/a
        until "\(WrapMachine.tool.path)" history "\(one.state.path)" file:home/.game/a --json 2>/dev/null |
          grep -c '"savedAtMilliseconds"' | grep -q "^$i$"; do sleep 0.05; done; done
        """)
      #expect(ended.status == 0, "\(ended.errors)")
      #expect(try one.history("a").count == 3)
    }
  }

  @Test("without a terminal both sides of a conflict are kept, on both machines, and can be restored")
  func both() async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let (one, two) = (machines[0], machines[1])
      try one.play("mkdir .game; printf old > .game/a")
      try two.play("true")
      try one.play("printf one > .game/a")
      // Played without the command, so that nothing came first.
      try two.write("two", to: "a")
      let ended = try two.play("cat .game/a")
      #expect(ended.text == "two" && ended.errors.contains("conflict: .game/a stays as it is here"))
      let name = try #require(try two.names().first { $0.hasPrefix("a.conflict-") })
      #expect(try two.read(name) == "one" && ended.errors.contains(name), "\(ended.errors)")
      try one.play("true")
      #expect(try one.read("a") == "two" && one.read(name) == "one" && one.names() == two.names())
      let versions = try two.history("a")
      #expect(versions.count == 4)
      let old = try #require(versions.last)
      #expect(try two.run("restore", two.state.path, "file:home/.game/a", old.id).status == 0)
      #expect(try two.play("cat .game/a").text == "old" && one.play("cat .game/a").text == "old")
    }
  }

  @Test(
    "a conflict is decided as --conflict says, and the other side stays in the history", arguments: ["mine", "theirs"])
  func decided(choice: String) async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let (one, two) = (machines[0], machines[1])
      try one.play("mkdir .game; printf old > .game/a; printf only > .game/b")
      try two.play("true")
      try one.play("printf one > .game/a")
      try two.write("two", to: "a")
      #expect(try two.play("cat .game/a", "--conflict", choice).text == (choice == "mine" ? "two" : "one"))
      #expect(try one.play("cat .game/a").text == (choice == "mine" ? "two" : "one"))
      #expect(try one.names() == ["a", "b"] && two.history("a").count == 4)
    }
  }

  @Test("what another machine sends while the game runs waits until the next start")
  func meanwhile() async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let (one, two) = (machines[0], machines[1])
      try one.play("mkdir .game; printf old > .game/a; printf x > .game/b")
      let inner = ([WrapMachine.tool.path] + two.arguments([])).map(Quoted.shell).joined(separator: " ")
      let environment = two.environment.map { "\($0.key)=\(Quoted.shell($0.value))" }.joined(separator: " ")
      let ended = try one.play(
        "env \(environment) \(inner) sh -c 'cd; printf two > .game/a; printf y > .game/c'; cat .game/a; ls .game;"
          + "printf one > .game/a")
      #expect(ended.text == "olda\nb\n")
      #expect(ended.errors.contains("another device changed 1 save meanwhile: decided at the next start"))
      let next = try one.play("cat .game/a .game/c", "--conflict", "theirs")
      #expect(next.text == "twoy", "\(next.errors)")
    }
  }

  @Test("the game starts without its cloud, and the saves are sent the next time")
  func away() async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let (one, two) = (machines[0], machines[1])
      let aside = one.shared.deletingLastPathComponent().appending(path: "aside")
      try FileManager.default.moveItem(at: one.shared, to: aside)
      let ended = try one.play("mkdir .game; printf new > .game/a; exit 3")
      #expect(ended.status == 3 && ended.errors.contains("the cloud can't be used now"))
      #expect(ended.errors.hasSuffix("that follows at the next start\n"), "\(ended.errors)")
      #expect(!FileManager.default.fileExists(atPath: one.shared.path), "it may be where a disk is mounted")
      try FileManager.default.moveItem(at: aside, to: one.shared)
      try one.play("true")
      #expect(try two.play("cat .game/a").text == "new")
    }
  }

  @Test("saves that were shared elsewhere aren't merged into another person's folder: that is told, and the game runs")
  func otherPerson() async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let (one, two) = (machines[0], machines[1])
      try one.play("mkdir .game; printf mine > .game/a")
      let elsewhere = two.home.appending(path: "Dropbox")
      try FileManager.default.createDirectory(at: elsewhere, withIntermediateDirectories: true)
      let folder = two.cloud
      two.cloud = ["--folder", elsewhere.path]
      try two.play("mkdir .game; printf theirs > .game/b")
      two.cloud = folder
      let ended = try two.play("ls .game; exit 4")
      #expect(ended.status == 4 && ended.text == "b\n")
      #expect(
        ended.errors.contains("belongs to another player") && ended.errors.contains("name a new --state folder"),
        "\(ended.errors)")
      #expect(try one.play("ls .game").text == "a\n")
      // As it says.
      let joined = try two.play("ls .game", "--state", two.home.appending(path: "new").path)
      #expect(joined.text == "a\nb\n", "\(joined.errors)")
      #expect(try one.play("ls .game").text == "a\nb\n")
    }
  }

  @Test("a file that another program changes all the time holds up no game, and is kept once it is unchanged")
  func growing() async throws {
    try await WrapMachine.with(["one"]) { machines in
      let one = machines[0]
      try one.write("", to: "log")
      let writer = Process()
      writer.executableURL = URL(fileURLWithPath: "/bin/sh")
      writer.arguments = ["-c", "while echo line >> '\(one.saves.path)/log'; do sleep 0.01; done"]
      try writer.run()
      // It may have inherited that SIGTERM is ignored, as servers in other tests do.
      defer { kill(writer.processIdentifier, SIGKILL) }
      try await until("it writes") { try one.read("log")?.isEmpty == false }
      let ended = try one.play("kill -9 \(writer.processIdentifier); exit 3", "--settle", "1000")
      #expect(ended.status == 3 && ended.errors.contains("1 file can't be kept yet"), "\(ended.errors)")
      #expect(ended.errors.hasSuffix("kept 1 version of 1 save; uploaded\n"), "\(ended.errors)")
    }
  }

  @Test("a folder of saves that the game removes deletes nothing, and comes back at the next start")
  func gone() async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let (one, two) = (machines[0], machines[1])
      try one.play("mkdir -p .game/sub; printf a > .game/a; printf b > .game/sub/b")
      try two.play("true")
      let ended = try one.play("rm -r .game")
      #expect(ended.errors.contains("the folder is gone"), "\(ended.errors)")
      #expect(try two.play("cat .game/a .game/sub/b").text == "ab")
      let back = try one.play("cat .game/a .game/sub/b")
      #expect(back.text == "ab" && back.errors.contains("2 saves put back"), "\(back.errors)")
      try one.play("rm .game/a")
      try two.play("true")
      #expect(try two.names() == ["sub"], "a file that the game removes is deleted")
    }
  }

  @Test("of two wraps at once the second one starts its game, too, and nothing is lost")
  func twice() async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let (one, two) = (machines[0], machines[1])
      let inner = ([WrapMachine.tool.path] + one.arguments([])).map(Quoted.shell).joined(separator: " ")
      let ended = try one.play("mkdir .game; \(inner) sh -c 'cd; printf inner > .game/b; exit 5'; echo $?")
      #expect(ended.text == "5\n" && ended.errors.contains("the saves aren't synced this time"), "\(ended.errors)")
      #expect(try two.play("cat .game/b").text == "inner")
    }
  }

  @Test("links, names that aren't UTF-8 and special files are left alone and told; nothing outside is read or written")
  func hostile() async throws {
    try await WrapMachine.with(["one", "two"]) { machines in
      let (one, two) = (machines[0], machines[1])
      let ended = try one.play(
        """
        mkdir .game outside; printf secret > outside/key; ln -s ../outside .game/dir; ln -s ../outside/key .game/key
        printf x > .game/a; printf y > ".game/$(printf '\\377')"; mkfifo .game/pipe
        """)
      for word in ["dir: symbolic links", "key: symbolic links", "pipe: not a regular file", "not valid UTF-8"] {
        #expect(ended.errors.contains(word), "\(word): \(ended.errors)")
      }
      // Of two devices that differ in what is a folder, neither follows the other's link.
      try two.play("mkdir -p .game outside; printf mine > outside/key; ln -s ../outside .game/dir")
      try one.play("rm .game/dir; mkdir .game/dir; printf attack > .game/dir/key")
      let last = try two.play("true")
      #expect(try String(contentsOf: two.home.appending(path: "outside/key"), encoding: .utf8) == "mine")
      #expect(last.errors.contains("not a regular file in ordinary folders"), "\(last.errors)")
      #expect(try two.names() == ["a", "dir"])
    }
  }

  @Test("what the cloud has outside of the game's places is told and not written")
  func attacker() throws {
    let root = TemporaryFolder.url("attacker")
    defer { try? FileManager.default.removeItem(at: root) }
    let home = root.appending(path: "home")
    try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
    let store = try Store.open(at: root.appending(path: "state"))
    var random = SystemRandomNumberGenerator()
    let slots = ["home/.game/ok", "home/.bashrc", "home/../evil", "home/.game/../evil", "/etc/x", ".game/x", "disk/x"]
    try store.write { transaction in
      for slot in slots {
        let content = try transaction.keepContent(Data(slot.utf8))
        let record = VersionRecord(
          id: VersionID(using: &random), slot: "file:" + slot, covers: [], contents: [content],
          length: slot.utf8.count, savedAtMilliseconds: 1, writer: WriterID(7), provisional: false, tombstone: false)
        try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
      }
    }
    let places = SavePlaces(platform: .linux, environment: [:], home: home.path, user: "ann")
    let areas = SaveAreas(
      try SaveArea.areas(of: places.places(of: "<home>/.game")), store: store, state: root.appending(path: "state"),
      settleMilliseconds: 10)
    _ = try areas.look()
    // The one that leads out of the folder is refused as a path, and told as that.
    #expect(try areas.outside().count == slots.count - 2)
    #expect(areas.issues.contains { $0.path == "file:home/.game/../evil" }, "\(areas.issues)")
    areas.isPlacing = true
    _ = try areas.bringBackGone()
    for _ in 0..<5 { _ = try areas.look() }
    let files = try FileManager.default.subpathsOfDirectory(atPath: home.path).sorted()
    #expect(files == [".game", ".game/ok"])
    try store.close()
  }

  @Test("a conflict's answer may be short, and means nothing if it is none")
  func answers() {
    #expect(ConflictQuestion.settlement(of: "m\n") == .mine && ConflictQuestion.settlement(of: " Theirs ") == .theirs)
    #expect(ConflictQuestion.settlement(of: "b") == .both && ConflictQuestion.settlement(of: "") == nil)
    #expect(ConflictQuestion.settlement(of: "yes") == nil)
  }
}
#endif
