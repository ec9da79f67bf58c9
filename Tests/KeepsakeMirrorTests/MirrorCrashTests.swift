import Foundation
import KeepsakeReplication
import KeepsakeStore
import Testing

@testable import KeepsakeMirror

@Suite struct MirrorCrashTests {
  /// A change to a folder in which `kept` and `gone` contain the text "before".
  struct Scenario: CustomTestStringConvertible, Sendable {
    var name: String
    var act: @Sendable (MirrorWorld) throws -> Void
    /// The files at the end.
    var files: [String: String]
    /// How many versions each file has at the end.
    var versions: [String: Int]
    var testDescription: String { name }
  }

  static let scenarios = [
    Scenario(
      name: "a changed save",
      act: { try $0.write("after", to: "kept") }, files: ["kept": "after", "gone": "before"],
      versions: ["kept": 2, "gone": 1]),
    Scenario(
      name: "a new save",
      act: { try $0.write("new", to: "dir/new") }, files: ["kept": "before", "gone": "before", "dir/new": "new"],
      versions: ["dir/new": 1, "kept": 1]),
    Scenario(
      name: "a deleted save", act: { try $0.delete("gone") }, files: ["kept": "before"],
      versions: ["gone": 2, "kept": 1]),
    Scenario(
      name: "a save from elsewhere over one here",
      act: { try $0.receive("after", slot: "file:kept", covers: $0.heads("kept")) },
      files: ["kept": "after", "gone": "before"], versions: ["kept": 2]),
    Scenario(
      name: "a new save from elsewhere",
      act: { try $0.receive("new", slot: "file:dir/new") },
      files: ["kept": "before", "gone": "before", "dir/new": "new"],
      versions: ["dir/new": 1]),
    Scenario(
      name: "a deletion from elsewhere",
      act: { try $0.receive(nil, slot: "file:gone", covers: $0.heads("gone")) }, files: ["kept": "before"],
      versions: ["gone": 2]),
  ]

  private static func prepared() throws -> MirrorWorld {
    let world = try MirrorWorld()
    try world.write("before", to: "kept")
    try world.write("before", to: "gone")
    try world.settle()
    return world
  }

  @Test(
    "a crash between any two steps loses nothing, duplicates nothing and leaves no temporary files behind",
    arguments: scenarios)
  func crash(_ scenario: Scenario) throws {
    // A run without a crash shows how many steps there are.
    let rehearsal = try Self.prepared()
    var steps: [MirrorStep] = []
    rehearsal.interrupt = { step, _ in steps.append(step) }
    try scenario.act(rehearsal)
    try rehearsal.settle()
    try Self.check(rehearsal, scenario, "without a crash")
    #expect(steps.contains { $0 != .scanned })
    for crashAt in steps.indices where steps[crashAt] != .scanned {
      let world = try Self.prepared()
      try scenario.act(world)
      var count = 0
      world.interrupt = { _, _ in
        defer { count += 1 }
        if count == crashAt { throw Crash() }
      }
      #expect(throws: Crash.self, "step \(crashAt)") { try world.settle() }
      world.interrupt = { _, _ in }
      try world.open()
      try world.settle()
      try Self.check(world, scenario, "crash at step \(crashAt), \(steps[crashAt])")
    }
  }

  @Test("repeated crashes during recovery are no worse than a single one", arguments: scenarios)
  func crashAgain(_ scenario: Scenario) throws {
    let world = try Self.prepared()
    try scenario.act(world)
    // Each start gets one step further than the one before.
    for reach in 1...40 {
      var count = 0
      world.interrupt = { step, _ in
        if step != .scanned { count += 1 }
        if count == reach { throw Crash() }
      }
      do {
        try world.open()
        try world.settle()
        break
      } catch is Crash {
        continue
      }
    }
    world.interrupt = { _, _ in }
    try world.open()
    try world.settle()
    try Self.check(world, scenario, "crashes at every start")
  }

  @Test("a save that changes after a crash between any two steps, before the next start, isn't lost")
  func changedWhileDead() throws {
    for crashAt in 0..<12 {
      let world = try Self.prepared()
      try world.receive("cloud", slot: "file:kept", covers: try world.heads("kept"))
      var count = 0
      world.interrupt = { step, _ in
        guard step != .scanned else { return }
        defer { count += 1 }
        if count == crashAt { throw Crash() }
      }
      do { try world.settle() } catch is Crash {}
      world.interrupt = { _, _ in }
      world.clock.advance(10_000)
      try world.write("player", to: "kept")
      try world.open()
      try world.settle()
      #expect(try world.read("kept") == "player", "crash at step \(crashAt)")
      #expect(try Set(world.texts("kept")) == ["before", "cloud", "player"], "crash at step \(crashAt)")
      #expect(try world.temporaries().isEmpty)
    }
  }

  @Test("a save that changes again after a crash while it was being captured doesn't conflict with itself")
  func changedAgainWhileDead() throws {
    for crashAt in 0..<6 {
      let world = try Self.prepared()
      try world.write("first", to: "kept")
      var count = 0
      world.interrupt = { step, _ in
        guard step != .scanned else { return }
        defer { count += 1 }
        if count == crashAt { throw Crash() }
      }
      do { try world.settle() } catch is Crash {}
      world.interrupt = { _, _ in }
      try world.write("second", to: "kept")
      try world.open()
      try world.settle()
      #expect(try world.read("kept") == "second", "crash at step \(crashAt)")
      #expect(try world.heads("kept").count == 1, "crash at step \(crashAt)")
      #expect(try world.texts("kept").contains("second"))
    }
  }

  @Test("one save that can't be captured doesn't hold up the others that changed with it")
  func oneBadAmongMany() throws {
    let world = try MirrorWorld(maximumBytes: 1_000)
    for number in 0..<70 { try world.write("save \(number)", to: "s\(number)") }
    try world.write(String(repeating: "x", count: 1_001), to: "large")
    for _ in 0..<4 {
      try world.look()
      world.clock.advance(MirrorWorld.settle)
    }
    #expect(try world.store.read { try $0.slots().count } == 70)
    #expect(world.events.filter(\.isIssue).count == 1)
    #expect(try world.look().troubled == 1)
  }

  @Test("a change whose commit was interrupted doesn't count as captured, and is captured later")
  func failedCommit() throws {
    let world = try Self.prepared()
    try world.write("after", to: "kept")
    var crashed = false
    // Between the log entry and the commit, as if the process died there.
    world.interrupt = { step, _ in
      if step == .noted, !crashed {
        crashed = true
        throw Crash()
      }
    }
    #expect(throws: Crash.self) { try world.settle() }
    try world.open()
    #expect(try world.texts("kept") == ["before"])
    try world.settle()
    #expect(try world.texts("kept") == ["after", "before"])
    #expect(try world.heads("kept").count == 1)
  }

  @Test("a change that the store refuses for lack of room isn't replaced by the earlier save, and is captured later")
  func refusedCommit() throws {
    let world = try Self.prepared()
    try world.write("after", to: "kept")
    var refused = false
    world.interrupt = { step, _ in
      guard step == .noted, !refused else { return }
      refused = true
      throw StoreError(.diskFull, "the disk is full")
    }
    try world.settle()
    #expect(refused)
    #expect(try world.texts("kept") == ["before"])
    world.clock.advance(FolderMirror.retryMilliseconds)
    try world.settle()
    #expect(try world.read("kept") == "after")
    #expect(try world.texts("kept") == ["after", "before"])
    #expect(try world.heads("kept").count == 1)
  }

  @Test("a truncated, damaged or empty `placed.log` causes no lost version, conflict or deletion")
  func damagedTable() throws {
    for damage in ["cut", "garbled", "gone"] {
      let world = try Self.prepared()
      let log = world.state.appendingPathComponent("placed.log")
      var bytes = try Data(contentsOf: log)
      switch damage {
      case "cut": bytes.removeLast(7)
      case "garbled": bytes.replaceSubrange(30..<40, with: Data("**********".utf8))
      default: bytes = Data()
      }
      try bytes.write(to: log)
      try world.open()
      try world.settle()
      try world.write("after", to: "kept")
      try world.settle()
      #expect(try world.texts("kept") == ["after", "before"], "\(damage)")
      #expect(try world.heads("kept").count == 1, "\(damage)")
      #expect(try world.history("gone").count == 1, "\(damage)")
    }
  }

  @Test("a folder mirrored by a newer version is an error, and its table is left unchanged")
  func newerTable() throws {
    let world = try Self.prepared()
    let log = world.state.appendingPathComponent("placed.log")
    try Data("{\"placed\":2}\n".utf8).write(to: log)
    let error = #expect(throws: MirrorError.self) { try world.open() }
    #expect(error?.code == .newer)
    #expect(try Data(contentsOf: log) == Data("{\"placed\":2}\n".utf8))
  }

  private static func check(_ world: MirrorWorld, _ scenario: Scenario, _ when: String) throws {
    #expect(try world.files() == scenario.files, "\(when)")
    for (name, count) in scenario.versions.sorted(by: { $0.key < $1.key }) {
      #expect(try world.history(name).count == count, "\(name), \(when)")
      #expect(try world.heads(name).count == 1, "\(name), \(when)")
    }
    #expect(try world.temporaries().isEmpty, "\(when)")
  }
}
