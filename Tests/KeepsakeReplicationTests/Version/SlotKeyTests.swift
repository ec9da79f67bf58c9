import Testing

@testable import KeepsakeReplication

/// Stores and clouds contain the text of keys, so it never changes.
@Suite struct SlotKeyTests {
  static let keys: [(SlotKey, text: String)] = [
    (.save("main"), "main"), (.save(""), ""), (.file("a.txt"), "\u{E000}file/a.txt"),
    (.localSave("main"), "\u{1}slot/main"),
    (.localFile("a.txt"), "\u{1}file/a.txt"),
    // For people a combining accent forms one character with the prefix before it; the name still begins with the
    // accent.
    (.file("\u{301}x"), "\u{E000}file/\u{301}x"), (.localSave("\u{301}x"), "\u{1}slot/\u{301}x"),
    (.localSave("\u{E000}file/a"), "\u{1}slot/\u{E000}file/a"), (.save("\u{1}other"), "\u{1}other"),
    (.save("\u{E000}files"), "\u{E000}files"),
  ]

  @Test("each key has the text that stores and clouds contain, byte for byte, and is parsed from it", arguments: keys)
  func text(key: SlotKey, text: String) {
    #expect(Array(key.text.utf8) == Array(text.utf8))
    #expect(SlotKey(text: text) == key && Array(SlotKey(text: text).text.utf8) == Array(text.utf8))
  }

  @Test("a local key leads back to its synced key, and every name with the local prefix is local")
  func sides() {
    for key in [SlotKey.save("main"), .file("main")] {
      #expect(!key.isLocal && key.local.isLocal && key.local.synced == key && key.synced == key)
      #expect(key.local.name == "main" && key.local.slot == key.text && key.local.isFile == key.isFile)
    }
    #expect(SlotKey.save("\u{1}other").isLocal && !SlotKey.save("\u{2}other").isLocal)
    #expect(SlotKey.save("main").local != SlotKey.file("main").local)
    let twice = SlotKey.localSave("main").local
    #expect(twice != .localSave("main") && SlotKey(text: twice.text) == twice)
  }
}
