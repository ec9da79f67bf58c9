import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeMirror

/// A part of a folder that is mirrored.
@Suite struct MirrorSelectionTests {
  private func matches(_ pattern: String, _ name: String) -> Bool { NamePattern(pattern).matches(name) }

  @Test("wildcards match as shells do, and what isn't one stands for itself")
  func names() {
    for (pattern, name) in [
      ("*.sav", "a.sav"), ("*.sav", ".sav"), ("s?t", "sat"), ("[a-c]x", "bx"), ("[!a-c]x", "dx"), ("[]]x", "]x"),
      ("[[]x]", "[x]"), ("[abc", "[abc"), ("a*b*c", "aXbXbc"), ("*", ""), ("é*", "épée"), ("[a-]", "-"),
    ] { #expect(matches(pattern, name), "\(pattern) \(name)") }
    for (pattern, name) in [
      ("*.sav", "a.save"), ("s?t", "st"), ("[a-c]x", "dx"), ("[!a-c]x", "ax"), ("a", "A"), ("é", "e\u{301}"),
      ("a*b*c", "aXbX"),
    ] { #expect(!matches(pattern, name), "\(pattern) \(name)") }
    #expect(NamePattern("plain").literalName == "plain" && NamePattern("[abc").literalName == "[abc")
    // Without limits a pattern of this kind takes longer than a test.
    #expect(!matches(String(repeating: "*a", count: 200) + "b", String(repeating: "a", count: 2_000)))
  }

  private static func selection(_ patterns: String...) -> MirrorSelection {
    MirrorSelection(
      prefix: "home/", patterns: patterns.map { $0.split(separator: "/").map { NamePattern(String($0)) } })
  }

  @Test("a selected folder has everything in it, and a folder on the way is entered, but has nothing itself")
  func paths() {
    let selection = Self.selection("game", "a/*/save", "deep/**/x")
    for path in ["game", "game/a/b", "a/1/save", "a/1/save/b", "deep/x", "deep/1/2/x/3"] {
      #expect(selection.takes(path.split(separator: "/").map(String.init)), "\(path)")
    }
    for path in ["gam", "games", "a", "a/1", "a/1/sav", "deep", "deep/1", "other"] {
      #expect(!selection.takes(path.split(separator: "/").map(String.init)), "\(path)")
    }
    let deep = Self.selection("**/a/**/b", "x/**")
    for path in ["a/b", "1/a/2/b/c", "a/1/a/b", "x", "x/1"] {
      #expect(deep.takes(path.split(separator: "/").map(String.init)), "\(path)")
    }
    #expect(!deep.takes(["b", "a"]) && !deep.takes(["1", "a", "2"]))
    // Tried in every way, a pattern of this kind takes longer than a test.
    let many = Self.selection(String(repeating: "**/a/", count: 12) + "b")
    #expect(!many.takes(Array(repeating: "a", count: 40)))
    #expect(selection.leads(["a"]) && selection.leads(["a", "1"]) && selection.leads(["deep", "1", "2"]))
    #expect(!selection.leads(["other"]) && !selection.leads(["a", "1", "other"]))
    #expect(selection.takes(["a", "1", "save.conflict-0123abcd"]) && !selection.takes(["a", "1", "save.conflict-x"]))
  }

  @Test("nothing outside of the selection is read or written, whatever the store has")
  func outside() throws {
    let world = try MirrorWorld(selection: Self.selection("game"))
    try world.write("mine", to: "game/a")
    try world.write("secret", to: "other")
    try world.receive("theirs", slot: "file:home/game/b")
    for slot in ["file:home/other", "file:home/.bashrc", "file:home/game/../.bashrc", "file:game/c", "file:home//x"] {
      try world.receive("attack", slot: slot)
    }
    try world.settle()
    #expect(try world.texts("home/game/a") == ["mine"] && world.read("game/b") == "theirs")
    #expect(try world.read("other") == "secret" && world.texts("home/other") == ["attack"])
    #expect(try world.read(".bashrc") == nil && world.read("game/c") == nil && world.files().count == 3)
  }

  @Test("while placing is held, changes are kept and nothing is written; afterwards it is")
  func held() throws {
    let world = try MirrorWorld(selection: Self.selection("game"))
    try world.open().isPlacing = false
    try world.receive("theirs", slot: "file:home/game/b")
    try world.write("mine", to: "game/a")
    try world.settle()
    #expect(try world.read("game/b") == nil && world.texts("home/game/a") == ["mine"])
    world.mirror?.isPlacing = true
    try world.settle()
    #expect(try world.read("game/b") == "theirs")
  }

  @Test("a named folder that is gone deletes nothing, and its saves come back; a file that is gone was deleted")
  func gone() throws {
    let world = try MirrorWorld(selection: Self.selection("game", "alone"))
    for name in ["game/a", "game/sub/b", "alone"] { try world.write(name, to: name) }
    try world.settle()
    try world.delete("game")
    try world.settle()
    #expect(try world.history("home/game/a").count == 1 && world.history("home/game/sub/b").count == 1)
    #expect(try world.open().bringBackGone(everything: false) == 2)
    try world.settle()
    #expect(try world.read("game/a") == "game/a" && world.read("game/sub/b") == "game/sub/b")
    try world.delete("game/sub")
    try world.delete("alone")
    try world.settle()
    #expect(try world.history("home/game/sub/b").first?.tombstone == true)
    #expect(try world.history("home/alone").first?.tombstone == true)
  }

  @Test("saves of a folder that is gone come back at a later start, if this one doesn't come to write them")
  func goneForLonger() throws {
    let world = try MirrorWorld(selection: Self.selection("game"))
    for name in ["game/a", "game/b"] { try world.write(name, to: name) }
    try world.settle()
    try world.delete("game")
    let mirror = try world.open()
    mirror.isPlacing = false
    #expect(try mirror.bringBackGone(everything: false) == 2)
    try world.settle()
    #expect(try world.files().isEmpty)

    // What a game makes there meanwhile replaces nothing: it didn't know what was there.
    try world.write("begun anew", to: "game/b")
    try world.open()
    try world.settle()
    #expect(try world.read("game/a") == "game/a")
    #expect(try Set(world.texts("home/game/b")) == ["game/b", "begun anew"])
    #expect(try world.heads("home/game/b").count == 2)
  }

  @Test("a folder that a game makes anew while it runs has the game's changes, and the rest comes back later")
  func madeAnew() throws {
    let world = try MirrorWorld(selection: Self.selection("game"))
    for name in ["game/a", "game/b"] { try world.write(name, to: name) }
    try world.settle()
    try world.delete("game")
    try world.write("later", to: "game/b")
    let mirror = try world.open()
    mirror.isPlacing = false
    #expect(try mirror.bringBackGone(everything: true) == 1)
    try world.settle()
    #expect(try world.texts("home/game/b") == ["game/b", "later"])
    #expect(try world.heads("home/game/b").count == 1)
    try world.open()
    try world.settle()
    #expect(try world.read("game/a") == "game/a" && world.read("game/b") == "later")
    #expect(try world.history("home/game/a").count == 1)
  }

  @Test("what is no longer selected isn't deleted", arguments: [true, false])
  func narrower(isThere: Bool) throws {
    let world = try MirrorWorld(selection: Self.selection("game", "other"))
    for name in ["game/a", "other/b"] { try world.write(name, to: name) }
    try world.settle()
    if !isThere { try world.delete("other/b") }
    world.selection = Self.selection("game")
    try world.open()
    try world.settle()
    #expect(try world.history("home/other/b").count == 1 && world.texts("home/other/b") == ["other/b"])
    #expect(!world.events.contains { $0.isIssue }, "\(world.events)")
  }

  @Test(
    "a conflict is settled for either side or for both, and every version stays",
    arguments: [
      FolderMirror.Settlement.mine, .theirs, .both,
    ])
  func conflict(settlement: FolderMirror.Settlement) throws {
    let world = try MirrorWorld(selection: Self.selection("game"))
    try world.open().isPlacing = false
    try world.write("mine", to: "game/a")
    try world.settle()
    try world.receive("theirs", slot: "file:home/game/a", savedAt: 1_899_999_999_999)
    let mirror = try #require(world.mirror)
    let conflict = try #require(try mirror.conflicts().first)
    #expect(conflict.mine.contents == [ContentHash(of: Data("mine".utf8))] && conflict.theirs.count == 1)
    let beside = try mirror.settle(conflict, by: settlement)
    mirror.isPlacing = true
    try world.settle()
    #expect(try mirror.conflicts().isEmpty && world.heads("home/game/a").count == 1)
    #expect(try world.read("game/a") == (settlement == .theirs ? "theirs" : "mine"))
    #expect(try world.texts("home/game/a").filter { $0 == "mine" }.count >= 1)
    #expect(try world.texts("home/game/a").contains("theirs"))
    #expect(beside.count == (settlement == .both ? 1 : 0))
    for path in beside { #expect(try world.read(path.text) == "theirs" && path.text.hasPrefix("game/a.conflict-")) }
  }

  @Test("temporaries of another mirror in the same folder are left alone, and one's own are removed")
  func temporaries() throws {
    let world = try MirrorWorld(selection: Self.selection("game", "b*"))
    try world.write("mine", to: "game/a")
    try world.write("mine", to: "b")
    try world.settle()
    let own = MirrorFolder.partPrefix + (try SavePath("b")).tag + "-1"
    let other = MirrorFolder.partPrefix + (try SavePath("c")).tag + "-1"
    for name in [own, other] { try world.write("half", to: name) }
    try world.open()
    #expect(try world.read(own) == nil && world.read(other) == "half")
  }
}
