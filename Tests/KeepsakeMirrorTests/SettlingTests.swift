import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeMirror

/// The time in which a file has to stay unchanged.
@Suite(.hangLimit) struct SettlingTests {
  private let path: SavePath

  init() throws { path = try SavePath("a.sav") }

  @Test("a file has settled once it was listed twice, so long apart; a pass says how long that still takes")
  func listedTwice() throws {
    let world = try MirrorWorld()
    try world.write("one", to: "a.sav")
    let first = try world.look()
    #expect(first.unsettled == 1 && first.settlesIn == MirrorWorld.settle)
    #expect(first.pause(atMost: 1_000) == .milliseconds(300) && first.pause(atMost: 100) == .milliseconds(100))
    world.clock.advance(100)
    #expect(try world.look().settlesIn == 200)
    // The time that passes after the listing shows nothing of the file.
    world.interrupt = { step, _ in if step == .scanned { world.clock.advance(200) } }
    let third = try world.look()
    #expect(third.unsettled == 1 && third.settlesIn == 0 && third.pause(atMost: 1_000) == .milliseconds(1))
    world.interrupt = { _, _ in }
    let fourth = try world.look()
    #expect(fourth.unsettled == 0 && fourth.settlesIn == nil && fourth.pause(atMost: 50) == .milliseconds(50))
    #expect(try world.texts("a.sav") == ["one"])
  }

  @Test("a pass says when the last file will have settled, so that files that are written in turn get no more passes")
  func lastSettles() throws {
    let world = try MirrorWorld()
    for number in 0..<3 {
      try world.write("\(number)", to: "\(number).sav")
      #expect(try world.look().settlesIn == MirrorWorld.settle)
      world.clock.advance(100)
    }
    let pass = try world.look()
    #expect(pass.unsettled == 2 && pass.settlesIn == 200)
  }

  @Test("what was read ahead is kept if the file is the same once it has settled, and read again if not")
  func readAhead() throws {
    let world = try MirrorWorld()
    let mirror = try world.open()
    mirror.ahead.leastAge = .min
    try world.write("one", to: "a.sav")
    try world.look()
    #expect(mirror.ahead.paths == [path])
    world.clock.advance(MirrorWorld.settle)
    try world.look()
    #expect(try world.texts("a.sav") == ["one"] && mirror.ahead.paths.isEmpty)

    try world.write("second", to: "a.sav")
    try world.look()
    #expect(mirror.ahead.paths == [path])
    // From now on every change is too recent to be read ahead.
    mirror.ahead.leastAge = .max
    try world.write("the third", to: "a.sav")
    for _ in 0..<2 {
      world.clock.advance(MirrorWorld.settle)
      try world.look()
    }
    #expect(try world.texts("a.sav") == ["one", "the third"] && mirror.ahead.paths.isEmpty)
  }

  @Test("a file is read ahead from three seconds after its last change on, of its bytes or of anything else")
  func age() {
    func takes(modified: Int64, changed: Int64, now: Int64) -> Bool {
      let signature = FileSignature(
        size: 1, modifiedNanoseconds: modified * 1_000_000, changedNanoseconds: changed * 1_000_000, inode: 1,
        device: 1)
      return ReadAhead().takes(path, signature, now: now)
    }
    #expect(takes(modified: 5_000, changed: 5_000, now: 8_000) && !takes(modified: 5_000, changed: 5_000, now: 7_999))
    #expect(!takes(modified: 0, changed: 5_000, now: 7_999) && !takes(modified: 5_000, changed: 0, now: 7_999))
    // Of a clock that was ahead.
    #expect(!takes(modified: 9_000, changed: 9_000, now: 8_000))
  }

  @Test("what isn't read ahead is kept as well: too many bytes, and files that changed just now")
  func limits() throws {
    let world = try MirrorWorld()
    let mirror = try world.open()
    mirror.ahead.leastAge = .max
    try world.write("just now", to: "a.sav")
    try world.look()
    #expect(mirror.ahead.paths.isEmpty)
    try world.settle()
    mirror.ahead.leastAge = .min
    let large = Data(repeating: 7, count: ReadAhead.maximumFileBytes)
    let count = Int(ReadAhead.maximumMemory / (Int64(large.count) + ReadAhead.overhead)) + 1
    for number in 0..<count { try world.write(large, to: "large\(number).sav") }
    try world.write(large + [8], to: "larger.sav")
    try world.look()
    let larger = try SavePath("larger.sav")
    #expect(mirror.ahead.paths.count == count - 1 && !mirror.ahead.paths.contains(larger))
    try world.delete("large0.sav")
    try world.settle()
    #expect(mirror.ahead.paths.isEmpty)
    #expect(mirror.placedFiles.count == count + 1)
    #expect(try world.history("larger.sav").map(\.length) == [large.count + 1])
  }
}
