import Foundation
import KeepsakePlatform
import Synchronization
import TestSupport
import Testing

@testable import Keepsake

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Games in processes of their own, to which real signals are sent.
@Suite(.serialized) struct AutosaveSignalTests {
  let device: Device

  init() throws { device = try Device() }

  /// The level that is loaded afterwards.
  private func level(of slot: Slot<World> = .main) throws -> Int? {
    let game = try device.open()
    defer { end(game) }
    return try game.saves.load(slot)?.level
  }

  @Test(
    "a game that receives a termination signal saves its current state, and ends by that signal",
    arguments: [SIGTERM, SIGINT, SIGHUP])
  func signals(number: Int32) async throws {
    let path = device.url.path
    await #expect(processExitsWith: .signal(number)) { [path = path as String, number = number as Int32] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      var world = World(level: 41)
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), within: patience) { world }
      world.level = 42
      kill(getpid(), number)
      while true {
        try autosave.update()
        usleep(1_000)
      }
    }
    #expect(try level() == 42)
  }

  @Test(
    "a game that receives two termination signals in quick succession saves, and ends by the first",
    arguments: [(SIGHUP, SIGHUP), (SIGTERM, SIGHUP), (SIGTERM, SIGTERM)])
  func toldTwice(first: Int32, second: Int32) async throws {
    let path = device.url.path
    await #expect(processExitsWith: .signal(first)) {
      [path = path as String, first = first as Int32, second = second as Int32] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      // However slow this machine is, the second signal doesn't end the game at once.
      SignalNotes.insistence.store(UInt64(UInt32.max), ordering: .relaxed)
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), within: patience) {
        // One during the save, too.
        kill(getpid(), second)
        return World(level: 42)
      }
      kill(getpid(), first)
      // Two pending signals would be delivered in the order of their numbers.
      while SignalNotes.endSignal == 0 { usleep(1_000) }
      kill(getpid(), second)
      while true {
        try autosave.update()
        usleep(1_000)
      }
    }
    #expect(try level() == 42)
  }

  @Test("a game that receives a termination signal saves all slots that it autosaves, not only the first")
  func signalsWithTwo() async throws {
    let path = device.url.path
    await #expect(processExitsWith: .signal(SIGTERM)) { [path = path as String] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      let first = Autosave(game, to: Slot("first"), every: .seconds(3_600), within: patience) { World(level: 1) }
      let second = Autosave(game, to: Slot("second"), every: .seconds(3_600), within: patience) { World(level: 2) }
      kill(getpid(), SIGTERM)
      while true {
        try first.update()
        try second.update()
        usleep(1_000)
      }
    }
    #expect(try level(of: Slot("first")) == 1)
    #expect(try level(of: Slot("second")) == 2)
  }

  @Test("with `saveAndContinue`, a game that receives a termination signal saves, and ends by itself")
  func continues() async throws {
    let path = device.url.path
    await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), atSignals: .saveAndContinue, within: patience) {
        World(level: 5)
      }
      kill(getpid(), SIGTERM)
      kill(getpid(), SIGHUP)
      while !autosave.isEndRequested {
        try autosave.update()
        usleep(1_000)
      }
      try game.close()
      exit(7)
    }
    #expect(try level() == 5)
  }

  @Test("a game that releases an autosave during a termination signal saves the others, and ends")
  func signalsWithOneGone() async throws {
    let path = device.url.path
    await #expect(processExitsWith: .signal(SIGTERM)) { [path = path as String] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      let first = Autosave(game, to: Slot("first"), every: .seconds(3_600), within: patience) { World(level: 1) }
      var second: Autosave<World>? = Autosave(game, to: Slot("second"), every: .seconds(3_600), within: patience) {
        World(level: 2)
      }
      kill(getpid(), SIGTERM)
      while !first.isEndRequested { try first.update() }
      // The second autosave is released instead of updated: the end waits for no other.
      withExtendedLifetime(second) {}
      second = nil
      exit(7)
    }
    #expect(try level(of: Slot("first")) == 1)
    #expect(try level(of: Slot("second")) == nil)
  }

  @Test("a game that hangs is ended by the signal after the deadline, and its last save is kept")
  func hanging() async throws {
    let path = device.url.path
    await #expect(processExitsWith: .signal(SIGTERM)) { [path = path as String] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      var world = World(level: 41)
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), within: .milliseconds(100)) { world }
      try autosave.saveNow().wait()
      world.level = 42
      kill(getpid(), SIGTERM)
      while true { sleep(1) }
    }
    #expect(try level() == 41)
  }

  @Test("a second signal, sent more than a second after the first, ends a game that hangs at once")
  func insisting() async throws {
    let path = device.url.path
    await #expect(processExitsWith: .signal(SIGINT)) { [path = path as String] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), within: patience) { World(level: 1) }
      kill(getpid(), SIGTERM)
      withExtendedLifetime(autosave) {
        while true {
          usleep(1_100_000)
          kill(getpid(), SIGINT)
        }
      }
    }
    #expect(try level() == nil)
  }

  @Test(
    "a game that can't save at a termination signal reports why, and still ends by the signal",
    arguments: [true, false])
  func failing(tellsGame: Bool) async throws {
    let path = device.url.path
    let told = device.folder.url.appendingPathComponent("told")
    let result = await #expect(processExitsWith: .signal(SIGTERM), observing: [\.standardErrorContent]) {
      [path = path as String, told = told as URL, tellsGame = tellsGame as Bool] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      var zoo = Zoo()
      let autosave = Autosave(game, to: Slot<Zoo>("zoo"), every: .seconds(3_600), within: patience) { zoo }
      try autosave.saveNow().wait()
      zoo.beast = Dragon()
      if tellsGame { autosave.onFailure = { error in try? Data("\(error)".utf8).write(to: told) } }
      kill(getpid(), SIGTERM)
      while true { try autosave.update() }
    }
    let errors = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(errors.contains("Dragon") != tellsGame)
    #expect((try? String(contentsOf: told, encoding: .utf8))?.contains("Dragon") == (tellsGame ? true : nil))
    let game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(Slot<Zoo>("zoo")).map { $0.beast == nil } == true)
  }

  @Test("a game without a loop saves at a termination signal, from an actor's task")
  func fromAnActor() async throws {
    let path = device.url.path
    await #expect(processExitsWith: .signal(SIGTERM)) { [path = path as String] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      await Keeper(game).play()
    }
    #expect(try level() == 43)
  }

  #if os(Linux)
  /// Sends signals to a game from outside, because the game can't do that while it is stopped. After each stop, it
  /// waits until the game has written one more byte to the file. A game that doesn't stop or continue is killed.
  private static let conductor = """
    pid=$1; stops=$2; file=$3; end=$4
    give_up() { kill -KILL $pid; exit 1; }
    i=0
    while [ $i -lt $stops ]; do
      kill -TSTP $pid
      n=0; until grep -q '^State:.T' /proc/$pid/status; do n=$((n + 1)); [ $n -lt 180000 ] || give_up; sleep 0.01; done
      [ $i -gt 0 ] || sleep 1
      [ $end != STOPPED ] || give_up
      [ $end != TOLD ] || { kill -TERM $pid; kill -CONT $pid; exit; }
      kill -CONT $pid
      i=$((i + 1))
      n=0; until [ $(wc -c < $file) -ge $i ]; do n=$((n + 1)); [ $n -lt 180000 ] || give_up; sleep 0.01; done
    done
    kill -$end $pid
    """

  /// Starts to send signals to this process, after making it one that the system allows to be stopped.
  static func conduct(stops: Int, _ file: URL, thenEnd signal: String) throws {
    // In a process group of its own, whose parent is in the same session and could continue it.
    setpgid(0, 0)
    try Data().write(to: file)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", conductor, "sh", "\(getpid())", "\(stops)", file.path, signal]
    try process.run()
  }

  @Test("a game that is stopped a hundred times is saved before each stop, and its playtime excludes the stops")
  func stops() async throws {
    let path = device.url.path
    let file = device.folder.url.appendingPathComponent("resumed")
    await #expect(processExitsWith: .signal(SIGTERM)) { [path = path as String, file = file as URL] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      var world = World(level: 0)
      var calls = (suspended: 0, resumed: 0)
      // Before the playtime begins, and below the clock is read after the playtime: no pause of this thread makes the
      // difference less than the stops.
      let begin = ContinuousClock.now
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), within: patience) { world }
      autosave.onSuspend = { calls.suspended += 1 }
      autosave.onResume = { calls.resumed += 1 }
      try Self.conduct(stops: 100, file, thenEnd: "TERM")
      while true {
        try autosave.update()
        if calls.resumed > world.level {
          let playtime = autosave.playtime
          guard calls == (world.level + 1, world.level + 1), !autosave.isSuspended,
            // The first stop takes at least a second.
            ContinuousClock.now - begin - playtime > .milliseconds(900)
          else { exit(3) }
          world.level += 1
          try Data(count: world.level).write(to: file)
        }
        usleep(1_000)
      }
    }
    #expect(try level() == 100)
  }

  /// Kills this process as soon as it is stopped, because nothing would continue it.
  private static func killWhenStopped() throws -> Process {
    setpgid(0, 0)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    let script = "while [ -d /proc/$1 ]; do grep -q '^State:.T' /proc/$1/status && kill -KILL $1; sleep 0.01; done"
    process.arguments = ["-c", script, "sh", "\(getpid())"]
    try process.run()
    return process
  }

  /// Sends a signal, and returns when it was received, maybe on another thread: a pending one would be discarded by the
  /// next.
  private static func send(_ number: Int32, heardAs stop: SignalNotes.Stop) {
    kill(getpid(), number)
    while SignalNotes.stop != stop { usleep(1_000) }
  }

  @Test(
    "a stop that is cancelled before the game has stopped leaves it running, and the next one stops it",
    arguments: [false, true])
  func stopTakenBack(whileSaving: Bool) async throws {
    let path = device.url.path
    let file = device.folder.url.appendingPathComponent("resumed")
    await #expect(processExitsWith: .signal(SIGTERM)) {
      [path = path as String, file = file as URL, whileSaving = whileSaving as Bool] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      var world = World(level: 0)
      var calls = (suspended: 0, resumed: 0)
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), within: patience) { world }
      let other = Autosave(game, to: Slot("other"), every: .seconds(3_600), within: patience) { World(level: 7) }
      autosave.onSuspend = { calls.suspended += 1 }
      autosave.onResume = { calls.resumed += 1 }
      other.onSuspend = {
        guard whileSaving else { return }
        Self.send(SIGCONT, heardAs: .takenBack)
      }
      let killer = try Self.killWhenStopped()
      Self.send(SIGTSTP, heardAs: .asked)
      if !whileSaving { Self.send(SIGCONT, heardAs: .takenBack) }
      for _ in 0..<200 {
        try autosave.update()
        try other.update()
        usleep(1_000)
      }
      guard !autosave.isSuspended, !other.isSuspended, calls.suspended == (whileSaving ? 1 : 0),
        calls.resumed == calls.suspended
      else { exit(3) }
      killer.terminate()
      killer.waitUntilExit()
      other.onSuspend = nil
      calls = (0, 0)
      try Self.conduct(stops: 1, file, thenEnd: "TERM")
      while true {
        try autosave.update()
        try other.update()
        if calls == (1, 1), !autosave.isSuspended, world.level == 0 {
          world.level = 42
          try Data(count: 1).write(to: file)
        }
        usleep(1_000)
      }
    }
    #expect(try level() == 42)
  }

  @Test("a game that is stopped and never continued was saved before it stopped")
  func stoppedForEver() async throws {
    let path = device.url.path
    let file = device.folder.url.appendingPathComponent("resumed")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, file = file as URL] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      let first = Autosave(game, to: Slot("first"), every: .seconds(3_600), within: patience) { World(level: 1) }
      let second = Autosave(game, to: Slot("second"), every: .seconds(3_600), within: patience) { World(level: 2) }
      try Self.conduct(stops: 1, file, thenEnd: "STOPPED")
      while true {
        try first.update()
        try second.update()
        usleep(1_000)
      }
    }
    #expect(try level(of: Slot("first")) == 1)
    #expect(try level(of: Slot("second")) == 2)
  }

  @Test("a game that receives a termination signal while it is stopped continues, saves, and ends")
  func toldWhileStopped() async throws {
    let path = device.url.path
    let file = device.folder.url.appendingPathComponent("resumed")
    await #expect(processExitsWith: .signal(SIGTERM)) { [path = path as String, file = file as URL] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      var world = World(level: 1)
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), within: patience) { world }
      autosave.onResume = { world.level = 2 }
      try Self.conduct(stops: 1, file, thenEnd: "TOLD")
      while true {
        try autosave.update()
        usleep(1_000)
      }
    }
    #expect(try level() == 2)
  }

  @Test("with several autosaves, each reports every resume after a stop, also when an actor's tasks run them")
  func stopsWithSeveral() async throws {
    let path = device.url.path
    let file = device.folder.url.appendingPathComponent("resumed")
    await #expect(processExitsWith: .signal(SIGTERM)) { [path = path as String, file = file as URL] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      let keeper = Keeper(game, noting: file)
      try Self.conduct(stops: 3, file, thenEnd: "TERM")
      await keeper.play(thenEnd: false)
    }
    #expect(try level() == 44)
    #expect(try level(of: Slot("other")) == 7)
  }

  @Test("a game that hangs can be stopped, and its playtime excludes the stop")
  func stopsWhileHanging() async throws {
    let path = device.url.path
    let file = device.folder.url.appendingPathComponent("resumed")
    await #expect(processExitsWith: .exitCode(7)) { [path = path as String, file = file as URL] in
      let game = try GameData.open("com.example.space", at: URL(fileURLWithPath: path))
      let begin = ContinuousClock.now
      let autosave = Autosave(game, to: .main, every: .seconds(3_600), within: .milliseconds(100)) { World(level: 1) }
      signal(SIGUSR1) { _ in hangs.store(false, ordering: .releasing) }
      try Self.conduct(stops: 1, file, thenEnd: "USR1")
      try Data(count: 1).write(to: file)
      while hangs.load(ordering: .acquiring) { usleep(1_000) }
      // The thread that receives the continue signal may record the length of the stop after this one gets here.
      while ContinuousClock.now - begin - autosave.playtime <= .milliseconds(900) {
        guard ContinuousClock.now - begin < patience else { exit(3) }
        try autosave.update()
        usleep(1_000)
      }
      exit(7)
    }
  }
  #endif
}

private let hangs = Atomic(true)
/// A deadline that no save comes near, on any machine.
private let patience = Patience.limit

/// A game in an actor, whose autosaves are run by its tasks.
private actor Keeper {
  private let main: Autosave<World>
  private let other: Autosave<World>

  init(_ game: GameData, noting file: URL? = nil) {
    main = Autosave(game, to: .main, every: .seconds(3_600), within: patience) { World(level: file == nil ? 43 : 44) }
    other = Autosave(game, to: Slot("other"), every: .seconds(3_600), within: patience) { World(level: 7) }
    var resumed = (main: 0, other: 0)
    // Both have to be notified before the next stop.
    func note() {
      guard resumed.main == resumed.other, let file else { return }
      do { try Data(count: resumed.main).write(to: file) } catch { exit(3) }
    }
    main.onResume = {
      resumed.main += 1
      note()
    }
    other.onResume = {
      resumed.other += 1
      note()
    }
  }

  func play(thenEnd isEnding: Bool = true) async {
    async let first: Void = runMain()
    async let second: Void = runOther()
    if isEnding { kill(getpid(), SIGTERM) }
    _ = await (first, second)
  }

  private func runMain() async { await main.run(every: .milliseconds(1)) }
  private func runOther() async { await other.run(every: .milliseconds(1)) }
}
