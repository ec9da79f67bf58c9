import Foundation
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeMirror

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

@Suite struct FolderMirrorTests {
  @Test("a save that the game is still writing isn't captured before it is complete")
  func standsStill() throws {
    let world = try MirrorWorld()
    for part in ["h", "ha", "hal", "half"] {
      try world.write(part, to: "a")
      try world.look()
      world.clock.advance(MirrorWorld.settle - 1)
    }
    #expect(try world.texts("a").isEmpty)
    try world.settle()
    #expect(try world.texts("a") == ["half"])
  }

  @Test("a save is captured once it has been unchanged for the whole settling time, and not before")
  func settlingTime() throws {
    let world = try MirrorWorld()
    try world.write("whole", to: "a")
    try world.look()
    world.clock.advance(MirrorWorld.settle - 1)
    try world.look()
    #expect(try world.texts("a").isEmpty)
    world.clock.advance(1)
    try world.look()
    #expect(try world.texts("a") == ["whole"])
  }

  @Test("the owner is told of each commit while a pass goes on")
  func committing() throws {
    let world = try MirrorWorld()
    let count = FolderMirror.batchChanges + 1
    for number in 0..<count { try world.write("\(number)", to: "save \(number)") }
    let mirror = try world.open()
    var kept: [Int] = []
    mirror.committed = {
      let groups = try? world.store.read { try $0.outbox(limit: .max) }
      kept.append(groups.map { $0.reduce(0) { $0 + $1.versions.count } } ?? -1)
    }
    try world.settle()
    #expect(kept == [FolderMirror.batchChanges, count])
  }

  @Test("a file that is dated in the future counts as saved now, and doesn't win over every later save")
  func futureDate() throws {
    let (one, two) = (try MirrorWorld(), try MirrorWorld())
    try one.write("start", to: "a")
    try MirrorWorld.exchange(one, two)
    try one.write("dated in the future", to: "a")
    let future = Date(timeIntervalSince1970: TimeInterval(one.clock.now / 1_000) * 2)
    try FileManager.default.setAttributes(
      [.modificationDate: future], ofItemAtPath: one.folder.appendingPathComponent("a").path)
    try one.settle()
    #expect(try one.history("a").allSatisfy { $0.savedAtMilliseconds <= one.clock.now })
    #expect(try one.history("a").count == 2)
    try MirrorWorld.exchange(one, two)
    #expect(try two.read("a") == "dated in the future")
    #expect(try two.heads("a").count == 1)
  }

  @Test("every change becomes a version, and writing the same bytes again doesn't")
  func changes() throws {
    let world = try MirrorWorld()
    for text in ["one", "two", "two", ""] {
      try world.write(text, to: "dir/a")
      try world.settle()
    }
    #expect(try world.texts("dir/a") == ["", "one", "two"])
    #expect(try world.heads("dir/a").count == 1)
  }

  @Test("a save and its deletion reach the other device, and its history remains")
  func deletes() throws {
    let (one, two) = (try MirrorWorld(), try MirrorWorld())
    try one.write("level 1", to: "a")
    try one.write("", to: "empty")
    try MirrorWorld.exchange(one, two)
    #expect(try two.files() == ["a": "level 1", "empty": ""])
    try two.delete("a")
    try MirrorWorld.exchange(one, two)
    #expect(try one.files() == ["empty": ""])
    #expect(try one.texts("a") == ["level 1"])
    try one.write("again", to: "a")
    try MirrorWorld.exchange(one, two)
    #expect(try two.read("a") == "again")
    #expect(try two.heads("a").count == 1)
  }

  @Test("a save that one device deletes while another changes it isn't lost")
  func deleteBesideLive() throws {
    let (one, two) = (try MirrorWorld(), try MirrorWorld())
    try one.write("1", to: "a")
    try MirrorWorld.exchange(one, two)
    try one.delete("a")
    try two.write("2", to: "a")
    try MirrorWorld.exchange(one, two)
    try MirrorWorld.exchange(one, two)
    #expect(try one.read("a") == "2")
    #expect(try two.read("a") == "2")
  }

  @Test("two devices with a conflict show the same save, keep the other one, and resolve it with the next change")
  func conflict() throws {
    let (one, two) = (try MirrorWorld(), try MirrorWorld())
    try one.write("start", to: "a")
    try MirrorWorld.exchange(one, two)
    try one.write("from one", to: "a")
    try two.write("from two", to: "a")
    try MirrorWorld.exchange(one, two)
    let standing = try #require(try one.read("a"))
    #expect(try two.read("a") == standing)
    #expect(try one.texts("a") == ["from one", "from two", "start"])
    #expect(try two.texts("a") == ["from one", "from two", "start"])
    #expect(try one.heads("a").count == 2)
    for world in [one, two] {
      let told = world.events.filter { if case .conflict = $0 { true } else { false } }
      #expect(told.count == 1, "reported once, not in every pass")
    }
    try two.write("played on", to: "a")
    try MirrorWorld.exchange(one, two)
    #expect(try one.read("a") == "played on")
    #expect(try one.heads("a").count == 1)
  }

  @Test("a save that was in a folder before the first sync doesn't replace the cloud's save, and isn't lost")
  func firstLaunch() throws {
    let world = try MirrorWorld()
    try world.write("fresh", to: "a")
    try world.settle()
    try world.receive("hundred hours", slot: "file:a", savedAt: 5)
    try world.settle()
    #expect(try world.read("a") == "hundred hours")
    #expect(try world.texts("a") == ["fresh", "hundred hours"])
  }

  @Test("the same save in both folders is neither a conflict nor a change")
  func sameContent() throws {
    let (one, two) = (try MirrorWorld(), try MirrorWorld())
    try one.write("same", to: "a")
    try one.settle()
    try one.send(to: two)
    try two.write("same", to: "a")
    try two.settle()
    #expect(try two.texts("a") == ["same"])
    #expect(!two.events.contains { if case .captured = $0 { true } else { false } })
  }

  @Test("going back to an older save on purpose is a change like any other")
  func goingBack() throws {
    let (one, two) = (try MirrorWorld(), try MirrorWorld())
    for text in ["old", "new", "old"] {
      try one.write(text, to: "a")
      try MirrorWorld.exchange(one, two)
      #expect(try two.read("a") == text)
    }
    #expect(try one.history("a").count == 3)
  }

  @Test("symbolic links, pipes and names that aren't text are reported and skipped, and don't stop the rest")
  func oddities() throws {
    let world = try MirrorWorld()
    let outside = world.root.appendingPathComponent("outside")
    try FileManager.default.createDirectory(at: outside, withIntermediateDirectories: true)
    try Data("secret".utf8).write(to: outside.appendingPathComponent("secret"))
    try FileManager.default.createSymbolicLink(
      at: world.folder.appendingPathComponent("link"), withDestinationURL: outside.appendingPathComponent("secret"))
    try FileManager.default.createSymbolicLink(
      at: world.folder.appendingPathComponent("linked"), withDestinationURL: outside)
    #expect(mkfifo(world.folder.appendingPathComponent("pipe").path, 0o600) == 0)
    let nonText: [CChar] = Array(world.folder.path.utf8CString.dropLast()) + [0x2F, -1, -2, 0]
    let file = open(nonText, O_CREAT | O_WRONLY, 0o600)
    #expect(file >= 0)
    close(file)
    try world.write("good", to: "good")
    try world.settle()
    #expect(try world.store.read { try $0.slots() } == ["file:good"])
    let issues = world.events.filter(\.isIssue)
    #expect(issues.count == 4, "\(issues)")
    try world.settle()
    #expect(world.events.filter(\.isIssue).count == 4, "each is reported once")
  }

  @Test(
    "a hostile cloud can't write outside the folder or into its state, and the attempt is reported",
    arguments: ["../out", "/keepsake-outside", ".keepsake/placed.log", "a/../../out", "linked/out", "x\u{0}y"])
  func hostileCloud(_ name: String) throws {
    let world = try MirrorWorld()
    let outside = world.root.appendingPathComponent("outside")
    try FileManager.default.createDirectory(at: outside, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      at: world.folder.appendingPathComponent("linked"), withDestinationURL: outside)
    try world.settle()
    let log = try Data(contentsOf: world.state.appendingPathComponent("placed.log"))
    try world.receive("evil", slot: "file:" + name)
    try world.receive("fine", slot: "file:fine")
    try world.settle()
    #expect(try world.read("fine") == "fine")
    #expect(try FileManager.default.contentsOfDirectory(atPath: outside.path).isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: world.root.path).sorted() == ["outside", "saves"])
    #expect(try Data(contentsOf: world.state.appendingPathComponent("placed.log")).starts(with: log))
    #expect(world.events.contains { $0.isIssue }, "it is reported")
  }

  @Test("a save isn't written through a folder that was replaced by a link")
  func folderBecomesLink() throws {
    let world = try MirrorWorld()
    let first = try world.receive("1", slot: "file:dir/a")
    try world.settle()
    let outside = world.root.appendingPathComponent("outside")
    try FileManager.default.moveItem(at: world.folder.appendingPathComponent("dir"), to: outside)
    try FileManager.default.createSymbolicLink(
      at: world.folder.appendingPathComponent("dir"), withDestinationURL: outside)
    try world.receive("2", slot: "file:dir/a", covers: [first])
    try world.settle()
    #expect(String(decoding: try Data(contentsOf: outside.appendingPathComponent("a")), as: UTF8.self) == "1")
    #expect(try world.history("dir/a").allSatisfy { !$0.tombstone }, "it doesn't count as deleted either")
  }

  @Test("an unmounted or replaced folder is an error, and its saves don't count as deleted")
  func folderGone() throws {
    let world = try MirrorWorld()
    try world.write("1", to: "a")
    try world.settle()
    let aside = world.root.appendingPathComponent("aside")
    try FileManager.default.moveItem(at: world.folder, to: aside)
    try FileManager.default.createDirectory(at: world.folder, withIntermediateDirectories: true)
    #expect(throws: MirrorError.self) { try world.look() }
    try FileManager.default.removeItem(at: world.folder)
    try FileManager.default.moveItem(at: aside, to: world.folder)
    try world.settle()
    #expect(try world.history("a").count == 1)
  }

  @Test("two files whose names differ only in their Unicode spelling are two saves")
  func spellings() throws {
    let (one, two) = (try MirrorWorld(), try MirrorWorld())
    try one.write("composed", to: "caf\u{E9}")
    try one.write("decomposed", to: "cafe\u{301}")
    try MirrorWorld.exchange(one, two)
    let names = try FileManager.default.contentsOfDirectory(atPath: two.folder.path).filter { !$0.hasPrefix(".") }
    #expect(names.count == 2)
    #expect(try two.read("caf\u{E9}") == "composed")
    #expect(try two.read("cafe\u{301}") == "decomposed")
  }

  @Test("hundreds of saves arrive intact, and so does a folder of them that is moved")
  func many() throws {
    let count = TestDepth.mirroredFiles
    let (one, two) = (try MirrorWorld(), try MirrorWorld())
    for number in 0..<count { try one.write("save \(number)", to: "d\(number % 7)/s\(number)") }
    try MirrorWorld.exchange(one, two)
    #expect(try two.files() == one.files())
    #expect(try two.files().count == count)
    try FileManager.default.moveItem(
      at: one.folder.appendingPathComponent("d3"), to: one.folder.appendingPathComponent("moved"))
    try MirrorWorld.exchange(one, two)
    #expect(try two.files() == one.files())
    #expect(try two.read("moved/s3") == "save 3")
  }

  @Test("files that show what is placed are looked at again only if their slots have changed")
  func unchanged() throws {
    let world = try MirrorWorld()
    for number in 0..<600 { try world.write("save \(number)", to: "s\(number)") }
    try world.write("gone", to: "gone")
    try world.settle()
    try world.delete("gone")
    try world.settle()
    var looked = 0
    func look(_ mirror: FolderMirror) throws {
      looked = 0
      mirror.progress = { _, count in looked = count }
      _ = try mirror.run()
    }
    let mirror = try #require(world.mirror)
    try look(mirror)
    #expect(looked == 0, "everything was committed by this mirror")
    try mirror.doubtEverything()
    try mirror.doubt(slots: (0..<600).map { "file:s\($0)" })
    try look(mirror)
    #expect(looked == 0)
    try look(world.open())
    #expect(looked == 0, "after a start, too")
    let before = try world.heads("s7")
    try world.receive("from elsewhere", slot: "file:s7", covers: before)
    try world.mirror?.doubtEverything()
    try look(#require(world.mirror))
    #expect(try looked == 1 && world.read("s7") == "from elsewhere")
    // It is read once, to know that what is there is what was placed. After that, a conflict is looked at each time.
    try world.settle()
    try world.receive("another", slot: "file:s8")
    for _ in 0..<2 {
      try world.mirror?.doubtEverything()
      try look(#require(world.mirror))
      #expect(looked == 1)
    }
    #expect(try world.texts("s8").count == 2)
  }

  @Test("many changes are committed together, in groups that a cloud accepts or refuses version by version")
  func groups() throws {
    let world = try MirrorWorld()
    for number in 0..<120 { try world.write("save \(number)", to: "s\(number)") }
    try world.settle()
    let groups = try world.store.read { try $0.outbox(limit: 10) }
    #expect(groups.map(\.versions.count) == [50, 50, 20])
    let heads = try (0..<120).flatMap { try world.heads("s\($0)") }
    #expect(Set(groups.flatMap(\.versions)) == Set(heads) && heads.count == 120)
  }

  @Test("what one transaction commits is recorded at once")
  func recordedOnce() throws {
    let world = try MirrorWorld()
    let store = MirrorStore(store: world.store)
    let changes = try (0..<120).map { number in
      let bytes = Data("save \(number)".utf8)
      return FolderMirror.Change(
        path: try SavePath("s\(number)"), bytes: bytes, hash: ContentHash(of: bytes), savedAt: 1)
    }
    var recorded: [Int] = []
    var random = SystemRandomNumberGenerator()
    _ = try store.commit(changes, now: 1, using: &random) { entries in
      recorded.append(entries.count)
    }
    #expect(recorded == [120])
    #expect(try world.store.read { try $0.slots().count } == 120)
  }

  @Test("a table that is rewritten in the middle of a commit that fails still has what was placed before")
  func rewrittenTable() throws {
    let folder = TemporaryFolder.url("placed")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    func entry(_ number: UInt64) -> PlacedEntry {
      let id = VersionID(high: 1, low: number)
      return PlacedEntry(version: id, shown: [id], hash: ContentHash(of: Data("\(number)".utf8)), before: [])
    }
    let (one, two) = (try SavePath("one"), try SavePath("two"))
    let known: Set<VersionID> = [entry(1).version, entry(2).version]
    var table = try PlacedTable(state: folder.path) { known.intersection($0) }
    try table.record([(one, entry(1)), (two, entry(2))])
    for _ in 0...PlacedTable.slack { try table.record(entry(1), at: one) }
    // Versions that are never committed, at the moment when there are lines enough for a rewriting.
    try table.record([(one, entry(3)), (two, entry(4))])
    for commits in [false, true] {
      let committed = commits ? known.union([entry(3).version]) : known
      let reopened = try PlacedTable(state: folder.path) { committed.intersection($0) }
      let (first, second) = (reopened[one], reopened[two])
      #expect(first == entry(commits ? 3 : 1) && second == entry(2))
    }
    try table.restore([(one, entry(1)), (two, nil)])
    let restored = (table[one], table[two])
    #expect(restored == (entry(1), nil))
    try table.forget([one])
    let last = try PlacedTable(state: folder.path) { known.intersection($0) }
    let (forgotten, later, damaged) = (table[one], last[one], last.damagedLines)
    #expect(forgotten == nil && later == nil && damaged == 0)
  }

  @Test("a restored version is written to the disk")
  func restore() throws {
    let world = try MirrorWorld()
    try world.write("good", to: "a")
    try world.settle()
    try world.write("bad", to: "a")
    try world.settle()
    let good = try #require(try world.history("a").last)
    try world.restore(good)
    try world.open()
    try world.settle()
    #expect(try world.read("a") == "good")
    #expect(try world.heads("a").count == 1)
    #expect(try world.texts("a") == ["bad", "good", "good"])
  }
}
