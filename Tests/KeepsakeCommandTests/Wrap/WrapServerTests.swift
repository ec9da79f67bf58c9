#if Cloud && os(Linux)
import Foundation
import Glibc
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake wrap` on machines that share a server, with shells as games.
@Suite struct WrapServerTests {
  /// A server as a process of its own, which can be stopped and started again at the same address.
  private final class Server {
    let data: URL
    private(set) var port = 0
    private(set) var appKey = ""
    private var process: Process?
    var pid: Int32 { process?.processIdentifier ?? 0 }

    init(in root: URL) { data = root.appending(path: "cloud") }

    /// Starts it, and waits until it listens.
    func start() async throws {
      let output = data.appendingPathExtension("output")
      try Data().write(to: output)
      let process = Process()
      process.executableURL = WrapMachine.tool
      process.arguments = ["serve", "--data", data.path, "--port", "\(port)", "--json"]
      process.standardOutput = try FileHandle(forWritingTo: output)
      process.standardError = FileHandle.nullDevice
      process.standardInput = FileHandle.nullDevice
      try process.run()
      self.process = process
      try await until("the server listens") {
        try Data(contentsOf: output).contains(UInt8(ascii: "\n")) || !process.isRunning
      }
      let hello = try JSONDecoder().decode(ServeCommand.Hello.self, from: Data(contentsOf: output))
      (port, appKey) = (hello.port, try #require(hello.appKeys.first))
    }

    func send(_ signal: Int32) { if pid > 0 { kill(pid, signal) } }

    /// Ends it at once.
    func stop() async throws {
      guard let process else { return }
      send(SIGKILL)
      try await until("the server has ended") { !process.isRunning }
      self.process = nil
    }

    deinit { send(SIGKILL) }
  }

  private func with(_ names: [String], _ body: (Server, [WrapMachine]) async throws -> Void) async throws {
    try await WrapMachine.with(names) { machines in
      let server = Server(in: machines[0].home.deletingLastPathComponent())
      try await server.start()
      for machine in machines {
        machine.cloud = ["--cloud", "http://127.0.0.1:\(server.port)", "--app-key", server.appKey]
      }
      try await body(server, machines)
      try await server.stop()
    }
  }

  /// Plays on the first machine, and has the second one join its player.
  private func pair(_ one: WrapMachine, _ two: WrapMachine) throws {
    let first = try one.play("mkdir .game; printf level1 > .game/a; exit 7", "--pair")
    #expect(first.status == 7 && first.errors.hasSuffix("kept 1 version of 1 save; uploaded\n"), "\(first.errors)")
    let code = try #require(first.errors.firstMatch(of: /pairing code: (\S+)/)?.1)
    let joined = try two.play("cat .game/a; printf level2 > .game/a", "--join", String(code))
    #expect(joined.text == "level1" && joined.errors.contains("received 1 save"), "\(joined.errors)")
  }

  @Test("a second machine joins with a code, has the newest saves before its game, and sends its own after it")
  func machines() async throws {
    try await with(["one", "two"]) { _, machines in
      let (one, two) = (machines[0], machines[1])
      try pair(one, two)
      let back = try one.play("cat .game/a; printf level3 > .game/a")
      #expect(back.text == "level2" && back.errors.hasSuffix("uploaded\n"), "\(back.errors)")
      #expect(try two.play("cat .game/a").text == "level3")
      // A code that stays in the options of a game is an error that says what to do, and the game runs.
      let again = try two.play("cat .game/a", "--join", "ABCD-EFGH")
      #expect(again.text == "level3" && again.errors.contains("leave out --join"), "\(again.errors)")
    }
  }

  @Test("a conflict is asked on a terminal, and without one both sides are kept, the other beside")
  func conflicts() async throws {
    try await with(["one", "two"]) { _, machines in
      let (one, two) = (machines[0], machines[1])
      try pair(one, two)
      func conflict(_ number: Int) throws {
        for machine in [one, two, one] { try machine.play("true") }
        try one.play("printf one\(number) > .game/a")
        try two.write("two\(number)", to: "a")
      }
      try conflict(1)
      let ended = try two.play("cat .game/a")
      #expect(ended.text == "two1" && ended.errors.contains("conflict: .game/a stays as it is here"), "\(ended.errors)")
      #expect(try two.names().filter { $0.hasPrefix("a.conflict-") }.map(two.read) == ["one1"])
      try conflict(2)
      let command = ([WrapMachine.tool.path] + two.arguments([]) + ["sh", "-c", "cd; cat .game/a; echo"])
        .map(Quoted.shell).joined(separator: " ")
      let asked = try TestSupport.ChildProcess.run(
        URL(fileURLWithPath: "/usr/bin/script"), ["-qec", command, "/dev/null"], input: Data("theirs\n".utf8),
        environment: two.environment)
      #expect(asked.text.contains("[m/t/b]") && asked.text.contains("one2"), "\(asked.text) \(asked.errors)")
      #expect(try one.play("cat .game/a").text == "one2")
    }
  }

  @Test("the game starts without its server, whether that is down, silent or goes away, and the saves follow later")
  func away() async throws {
    try await with(["one", "two", "three"]) { server, machines in
      let (one, two, three) = (machines[0], machines[1], machines[2])
      try pair(one, two)
      try await server.stop()
      let down = try one.play("cat .game/a; printf down > .game/a; exit 3")
      #expect(down.status == 3 && down.text == "level1", "\(down.errors)")
      #expect(down.errors.contains("the cloud can't be used now") && down.errors.contains("that follows at the next"))
      // One that never connected, too.
      #expect(try three.play("mkdir .game; printf x > .game/x; exit 5").status == 5)
      try await server.start()
      server.send(SIGSTOP)
      for (machine, status) in [(one, 3), (three, 5)] {
        let silent = try machine.play("ls .game; exit \(status)", "--wait", "1")
        #expect(silent.status == status && silent.errors.contains("the cloud can't be used now"), "\(silent.errors)")
      }
      server.send(SIGCONT)
      let gone = try one.play("kill -KILL \(server.pid); printf gone > .game/a; exit 4")
      #expect(gone.status == 4 && gone.errors.contains("not uploaded ("), "\(gone.errors)")
      try await server.stop()
      try await server.start()
      #expect(try one.play("true").errors.hasSuffix("everything is uploaded\n"))
      #expect(try two.play("cat .game/a", "--conflict", "theirs").text == "gone")
      let late = try three.play("true")
      #expect(late.errors.hasSuffix("everything is uploaded\n"), "\(late.errors)")
    }
  }

  @Test("a wrong app key is told with what to do about it, and the game runs")
  func wrongKey() async throws {
    try await with(["one"]) { _, machines in
      let one = machines[0]
      one.cloud[one.cloud.count - 1] = "wrong"
      let ended = try one.play("mkdir .game; printf x > .game/x; exit 6")
      #expect(ended.status == 6 && ended.errors.contains("check --app-key"), "\(ended.errors)")
      #expect(try one.history("x").count == 1)
    }
  }
}
#endif
