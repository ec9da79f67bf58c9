import Foundation
import KeepsakeReplication
import KeepsakeStore
import Testing

@testable import KeepsakeMirror

/// Files whose names only some systems can have: kept wherever they are, and written wherever they can be.
@Suite struct SystemNamesTests {
  private static let windowsCannot = [
    "CON", "con.sav", "Aux.tar.gz", "nul", "prn .txt", "COM1", "lpt9.sav", "com¹", "LPT³.x", "conin$", "CONOUT$.log",
    "a:b", "what?", "all*", "less<more>", "a|b", "quo\"te", "back\\slash", "..\\escape", "end.", "end ", "...",
    "folder./save", "AUX/save",
  ]
  private static let everywhere = [
    "save.dat", "console", "comet", "com", "COM10", "lpt", "nul_", "a.con", "é😀", "in between.sav", ".hidden",
    "folder/save",
  ]

  @Test("Windows can't have its devices' names, its own characters, and a dot or a space at the end")
  func windows() throws {
    for name in Self.windowsCannot { #expect(try !SystemNames.windows.allows(SavePath(name)), "\(name)") }
    for name in Self.everywhere { #expect(try SystemNames.windows.allows(SavePath(name)), "\(name)") }
    for name in Self.windowsCannot + Self.everywhere { #expect(try SystemNames.any.allows(SavePath(name))) }
  }

  @Test("such files are kept and go to every device; one whose system can't have them says so once and writes the rest")
  func bothSides() throws {
    let (linux, windows, other) = (
      try MirrorWorld(names: .any), try MirrorWorld(names: .windows), try MirrorWorld(names: .any)
    )
    let names = Self.windowsCannot + Self.everywhere
    for name in names { try linux.write("save of \(name)", to: name) }
    try linux.settle()
    #expect(linux.events.count(where: { if case .captured = $0 { true } else { false } }) == names.count)
    #expect(!linux.events.contains { $0.isIssue })

    try linux.send(to: other)
    try other.settle()
    #expect(try other.files() == linux.files())

    try windows.look()
    try linux.send(to: windows)
    for _ in 0..<3 {
      try windows.settle()
      try windows.mirror?.doubtEverything()
    }
    #expect(try Set(windows.files().keys) == Set(Self.everywhere))
    let issues = windows.events.compactMap { if case .issue(let issue) = $0 { issue } else { nil } }
    #expect(Set(issues.map(\.path)) == Set(Self.windowsCannot.map { "file:" + $0 }) && issues.count == 24)
    #expect(issues.allSatisfy { $0.message.contains("not written here: this system can't have a file of this name") })
    for name in names { #expect(try windows.texts(name) == ["save of \(name)"]) }

    // A later version changes nothing about that, and what is there is no deletion of what isn't.
    try linux.write("later", to: "CON")
    try linux.write("later", to: "comet")
    try linux.settle()
    try linux.send(to: windows)
    try windows.open()
    try windows.settle()
    #expect(try windows.read("comet") == "later" && windows.files().count == Self.everywhere.count)
    #expect(try windows.history("CON").map(\.tombstone) == [false, false])
    #expect(!windows.events.contains { if case .deleted = $0 { true } else { false } })
    try windows.send(to: other)
    try other.settle()
    #expect(try other.read("CON") == "later" && other.files().count == names.count)

    // Renamed where both are possible, it is everywhere.
    try linux.delete("CON")
    try linux.write("later", to: "console.sav")
    try linux.settle()
    let (said, before) = (windows.events.count, issues.count)
    try linux.send(to: windows)
    try windows.settle()
    #expect(try windows.read("console.sav") == "later")
    #expect(!windows.events.dropFirst(said).contains { $0.isIssue } && before == 24)
    let last = try windows.open().run().events
    #expect(!last.contains { if case .issue(let issue) = $0 { issue.path == "file:CON" } else { false } })
  }

  @Test("a file that another system has placed in the same folder isn't deleted where its name is impossible")
  func movedToAnotherSystem() throws {
    let world = try MirrorWorld(names: .any)
    for name in ["a:b", "plain"] { try world.write(name, to: name) }
    try world.settle()
    world.names = .windows
    try world.open()
    // As Windows shows the folder.
    try world.delete("a:b")
    try world.settle()
    #expect(try world.history("a:b").map(\.tombstone) == [false])
    #expect(!world.events.contains { if case .deleted = $0 { true } else { false } })
    world.names = .any
    try world.open()
    try world.delete("plain")
    try world.settle()
    #expect(try world.history("plain").first?.tombstone == true)
  }

  @Test("names that differ only in case or spelling are two files; a disk on which they are one has one, and says so")
  func sameNames() throws {
    let (linux, other) = (try MirrorWorld(), try MirrorWorld())
    let names = ["Save.dat", "save.dat", "caf\u{E9}", "cafe\u{301}"]
    for (number, name) in names.enumerated() {
      // By its bytes: Foundation might change the spelling.
      try #require(creates(linux.folder.path + "/" + name, "save \(number)"))
    }
    try linux.settle()
    #expect(linux.events.count(where: { if case .captured = $0 { true } else { false } }) == 4)

    // What such a disk looks like: there is a file under the other name, which the listing doesn't have.
    let alias = other.folder.appendingPathComponent("save.dat")
    other.interrupt = { step, _ in
      if step == .scanned { _ = link(other.folder.path + "/Save.dat", alias.path) }
    }
    try linux.send(to: other)
    for _ in 0..<10 {
      try other.look()
      unlink(alias.path)
      other.clock.advance(MirrorWorld.settle)
    }
    #expect(try other.read("Save.dat") == "save 0" && !FileManager.default.fileExists(atPath: alias.path))
    let issues = other.events.compactMap { if case .issue(let issue) = $0 { issue } else { nil } }
    #expect(issues.map(\.path) == ["save.dat"] && issues[0].message.contains("as the same"), "\(issues)")
    #expect(try other.texts("save.dat") == ["save 1"])
    #expect(!other.events.contains { if case .deleted = $0 { true } else { false } })
    for name in names.dropFirst(2) { #expect(try other.texts(name).count == 1, "\(name)") }
    // By bytes: as texts, two of them are equal.
    #expect(try MirrorFolder(path: other.folder.path, state: other.state.path).scan().files.count == 3)
  }

  private func creates(_ path: String, _ text: String) -> Bool {
    let file = fopen(path, "w")
    defer { if let file { fclose(file) } }
    return file.map { fputs(text, $0) >= 0 } ?? false
  }

  @Test("names that no device can be given are reported and left alone: control characters, and more than 240 bytes")
  func nowhere() throws {
    let world = try MirrorWorld()
    let names = ["tab\there", "line\nfeed", "esc\u{1B}[2J", "c1\u{9B}", String(repeating: "x", count: 241)]
    for name in names { try world.write("x", to: name) }
    try world.write("y", to: String(repeating: "y", count: 240))
    try world.settle()
    let issues = world.events.compactMap { if case .issue(let issue) = $0 { issue } else { nil } }
    #expect(Set(issues.map(\.path)) == Set(names))
    let slots = try world.store.read { try $0.slots() }
    #expect(slots.count == 1)
    for name in names { #expect(try world.read(name) == "x") }
  }
}
