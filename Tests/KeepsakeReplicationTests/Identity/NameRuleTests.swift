import KeepsakeReplication
import Testing

@Suite struct NameRuleTests {
  @Test(
    "a name that isn't allowed is refused with its kind, the limit and what is wrong with it",
    arguments: [
      (NameRule.slot, "", "a slot's name must have 1 to 256 bytes and no control characters: \"\" is empty"),
      (.board, "a\tb", "a board's name must have 1 to 100 bytes and no control characters: \"a\\u{9}b\" has U+0009"),
      (.value, "\u{7F}", "a value's name must have 1 to 256 bytes and no control characters: \"\\u{7f}\" has U+007F"),
      (.good, "", "a good's name must have 1 to 128 bytes: \"\" is empty"),
      (
        .player, String(repeating: "é", count: 76),
        """
        a player's name must have at most 150 bytes and no control characters: \
        "\(String(repeating: "é", count: 40))..." has 152
        """
      ),
      (
        .device, "a\u{85}",
        "a device's name must have at most 200 bytes and no control characters: \"a\\u{85}\" has U+0085"
      ),
    ])
  func refused(rule: NameRule, name: String, objection: String) {
    #expect(rule.objection(to: name) == objection)
    #expect(!rule.allows(name))
  }

  @Test("names up to the limit are allowed, in bytes of UTF-8; what was always accepted still is")
  func allowed() {
    let rules: [NameRule] = [
      .slot, .trackedFile, .localFile, .value, .preference, .collection, .board, .player, .currency, .good, .claim,
      .reason, .device,
    ]
    for rule in rules {
      for letter in ["x", "é", "🗡️"] {
        let longest = String(repeating: letter, count: rule.maximumBytes / letter.utf8.count)
        #expect(rule.objection(to: longest) == nil, "\(rule.kind)")
        #expect(rule.objection(to: longest + letter)?.hasSuffix(" has \((longest + letter).utf8.count)") == true)
      }
      #expect(rule.objection(to: "a b/c:d") == nil, "\(rule.kind)")
    }
    #expect(NameRule.currency.allows("a\nb") && NameRule.slot.allows("a\u{85}") && NameRule.player.allows(""))
  }
}
