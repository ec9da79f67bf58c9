import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeMirror

@Suite struct MirrorRaceTests {
  @Test("what the game saves at the very moment its file is replaced isn't lost", arguments: [false, true])
  func swapRace(byRename: Bool) throws {
    let world = try MirrorWorld()
    try world.write("before", to: "a")
    try world.settle()
    try world.receive("cloud", slot: "file:a", covers: try world.heads("a"))
    var raced = false
    let file = world.folder.appendingPathComponent("a")
    world.interrupt = { step, _ in
      guard step == .written, !raced else { return }
      raced = true
      // Newer than what the cloud sent, as a save of this moment is.
      try Data("player".utf8).write(to: file, options: byRename ? .atomic : [])
    }
    try world.settle()
    try world.settle()
    #expect(raced)
    #expect(try Set(world.texts("a")) == ["before", "cloud", "player"])
    #expect(try world.read("a") == "player", "the newer of the two is shown")
    #expect(world.events.contains { if case .rescued = $0 { true } else { false } })
    #expect(try world.temporaries().isEmpty)
  }

  @Test("what a game writes to a file that it holds open while the file is replaced is captured completely")
  func openWhileReplaced() throws {
    let world = try MirrorWorld()
    try world.write("before", to: "a")
    try world.settle()
    try world.receive("cloud", slot: "file:a", covers: try world.heads("a"))
    var handle: FileHandle?
    let file = world.folder.appendingPathComponent("a")
    world.interrupt = { step, _ in
      if step == .written, handle == nil {
        handle = try FileHandle(forWritingTo: file)
        try handle?.truncate(atOffset: 0)
        try handle?.write(contentsOf: Data("first ".utf8))
      }
    }
    try world.look()
    let open = try #require(handle)
    world.clock.advance(MirrorWorld.settle - 1)
    try world.look()
    try open.write(contentsOf: Data("second".utf8))
    try open.close()
    try world.settle()
    try world.settle()
    #expect(try Set(world.texts("a")) == ["before", "cloud", "first second"])
    #expect(try world.temporaries().isEmpty)
  }

  @Test("a save that the game makes where another one is about to arrive isn't overwritten")
  func newcomer() throws {
    let world = try MirrorWorld()
    try world.settle()
    try world.receive("cloud", slot: "file:a")
    let file = world.folder.appendingPathComponent("a")
    var raced = false
    world.interrupt = { step, _ in
      guard step == .written, !raced else { return }
      raced = true
      try Data("player".utf8).write(to: file)
    }
    try world.settle()
    #expect(raced)
    #expect(try world.texts("a") == ["cloud", "player"])
    #expect(try world.heads("a").count == 2)
    #expect(try world.temporaries().isEmpty)
  }

  @Test("a save that is deleted at the moment it is replaced returns with the other device's version")
  func deletedMeanwhile() throws {
    let world = try MirrorWorld()
    try world.write("before", to: "a")
    try world.settle()
    try world.receive("cloud", slot: "file:a", covers: try world.heads("a"))
    let file = world.folder.appendingPathComponent("a")
    var raced = false
    world.interrupt = { step, _ in
      guard step == .written, !raced else { return }
      raced = true
      try FileManager.default.removeItem(at: file)
    }
    try world.settle()
    #expect(raced)
    #expect(try world.read("a") == "cloud")
    #expect(try world.temporaries().isEmpty)
  }

  @Test("a save that arrives at the path of a folder, or below that of a file, is reported and changes nothing")
  func blocked() throws {
    let world = try MirrorWorld()
    try world.write("inner", to: "a/b")
    try world.settle()
    try world.receive("cloud", slot: "file:a")
    try world.receive("cloud", slot: "file:a/b/c")
    try world.settle()
    #expect(try world.files() == ["a/b": "inner"])
    #expect(world.events.filter(\.isIssue).count == 2, "\(world.events)")
    #expect(try world.history("a").allSatisfy { !$0.tombstone })
  }
}
