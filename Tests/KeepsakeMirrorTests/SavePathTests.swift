import Foundation
import Testing

@testable import KeepsakeMirror

@Suite struct SavePathTests {
  @Test(
    "a name from the cloud can't lead out of the player's folder",
    arguments: [
      ("", SavePathRefusal.empty), ("/etc/passwd", .absolute), ("..", .escapes), ("../x", .escapes),
      ("a/../../x", .escapes),
      ("./x", .escapes), ("a/./x", .escapes), ("a//x", .emptyComponent), ("a/", .emptyComponent),
      (".keepsake", .reserved), (".keepsake/store.sqlite", .reserved), (".KeepSake/x", .reserved),
      ("a/.keepsake-x", .reserved),
      ("a/.keepsake-part-1", .reserved), ("a\u{0}b", .controlCharacter), ("a\nb", .controlCharacter),
      ("a\u{1B}[2Jb", .controlCharacter), ("a\u{7F}", .controlCharacter), ("a\u{9B}b", .controlCharacter),
      (String(repeating: "x", count: 241), .tooLong),
      (Array(repeating: String(repeating: "x", count: 100), count: 10).joined(separator: "/"), .tooLong),
      (Array(repeating: "x", count: 33).joined(separator: "/"), .tooDeep),
    ])
  func refuses(_ text: String, _ reason: SavePathRefusal) {
    #expect(throws: reason) { try SavePath(text) }
    #expect(throws: reason) { try SavePath(slot: "file:" + text) }
  }

  @Test(
    "an ordinary file name is accepted, and is read back from its slot unchanged",
    arguments: [
      "save.dat", "Slot 1/world.sav", "ünïcödé/セーブ.dat", "...", "a..b", ".hidden", ".keepsakes", "back\\slash",
      "keepsake", "-rf",
      String(repeating: "x", count: 240),
    ])
  func accepts(_ text: String) throws {
    let path = try SavePath(text)
    #expect(path.text == text)
    #expect(try SavePath(slot: path.slot) == path)
    #expect(path.components.joined(separator: "/") == text)
  }

  @Test("what a scan finds has the same path, or is refused for the same reason, as the whole path in words")
  func inFolder() throws {
    func outcome(_ path: () throws(SavePathRefusal) -> SavePath) -> Result<SavePath, SavePathRefusal> {
      do throws(SavePathRefusal) { return .success(try path()) } catch { return .failure(error) }
    }
    let long = String(repeating: "x", count: 120)
    let deep = Array(repeating: "d", count: 31).joined(separator: "/")
    let names = [
      "save.dat", "ü", "..", ".", ".keepsake", ".KeepSake-x", ".keepsakes", "a\u{1F}", "a\u{7F}", "\u{80}", "\u{9F}b",
      "\u{A0}", "\u{C0}", "\u{2028}", "\r\n", "e\u{301}", long, long + long,
      long + long + "x",
    ]
    let folders = [nil, "f", "f/g", deep, String(deep.dropLast(2)), long, long + "/" + long]
    let prefixes = [nil, "p", "p/q", deep, long, long + "/" + long]
    var accepted = 0
    for name in names {
      for folder in folders {
        for prefix in prefixes {
          let (above, before) = (try folder.map { try SavePath($0) }, try prefix.map { try SavePath($0) })
          let whole = [folder, name].compactMap(\.self).joined(separator: "/")
          let expected = outcome { () throws(SavePathRefusal) in
            if let prefix { _ = try SavePath(prefix + "/" + whole) }
            return try SavePath(whole)
          }
          let found = outcome { () throws(SavePathRefusal) in
            try SavePath(Array(name.utf8), in: above, behind: before)
          }
          #expect(expected == found, "\(prefix ?? "-") \(folder ?? "-") \(name)")
          if case .success = found { accepted += 1 }
        }
      }
    }
    #expect(accepted > 100)
  }

  @Test("two names that differ only in their Unicode spelling are different paths")
  func spellings() throws {
    let composed = try SavePath("caf\u{E9}.sav")
    let decomposed = try SavePath("cafe\u{301}.sav")
    #expect(composed.text == decomposed.text, "as strings they are equal, which is the trap")
    #expect(composed != decomposed)
    #expect(composed.tag != decomposed.tag)
    #expect(Set([composed, decomposed]).count == 2)
  }

  @Test("a slot that isn't a file's has no path")
  func otherSlots() throws {
    #expect(try SavePath(slot: "autosave") == nil)
    #expect(try SavePath(slot: "File:x") == nil)
  }
}
