@testable import ArchiveWorlds

/// A random JSON5 document, and JSON with the same values.
struct RandomJSON5 {
  private(set) var text = ""
  private(set) var json = ""
  private var random: Seeded

  init(seed: UInt64) {
    random = Seeded(seed)
    if once(in: 8) { text = "\u{FEFF}" }
    space()
    value(depth: 4)
    space()
  }

  private mutating func pick<Element>(_ choices: [Element]) -> Element {
    choices[Int.random(in: 0..<choices.count, using: &random)]
  }

  /// True once in `odds` times, on average.
  private mutating func once(in odds: Int) -> Bool { Int.random(in: 0..<odds, using: &random) == 0 }

  private mutating func write(_ text: String, _ json: String) {
    self.text += text
    self.json += json
  }

  private mutating func space() {
    while once(in: 3) {
      text += pick([
        " ", " ", "\t", "\n", "\r\n", "\r", "\u{A0}", "\u{B}", "\u{C}", "\u{2028}", "\u{3000}", "\u{FEFF}",
        "// a 'comment' {\n", "//\r\n", "// é\u{2029}", "/* a\r\n * \"b\" */", "/***/", "/* 🗡️ */",
      ])
    }
  }

  private mutating func value(depth: Int) {
    switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &random) {
    case 0:
      let word = pick(["true", "false", "null"])
      write(word, word)
    case 1, 2: number()
    case 3, 4, 5: string()
    case 6: elements("[", "]") { $0.value(depth: depth - 1) }
    default:
      var names: Set<String> = []
      elements("{", "}") {
        $0.newName(besides: &names)
        $0.space()
        $0.write(":", ":")
        $0.space()
        $0.value(depth: depth - 1)
      }
    }
  }

  /// Writes a name that its object doesn't have yet.
  private mutating func newName(besides names: inout Set<String>) {
    let before = (text, json)
    while true {
      if once(in: 2) { name() } else { string() }
      if names.insert(String(json.dropFirst(before.1.count))).inserted { return }
      (text, json) = before
    }
  }

  private mutating func elements(_ opening: String, _ closing: String, _ element: (inout Self) -> Void) {
    write(opening, opening)
    space()
    let count = Int.random(in: 0..<4, using: &random)
    for index in 0..<count {
      if index > 0 {
        write(",", ",")
        space()
      }
      element(&self)
      space()
    }
    if count > 0, once(in: 3) {
      text += ","
      space()
    }
    write(closing, closing)
  }

  private mutating func number() {
    let (text, json) = pick([
      ("0", "0"), ("-0", "-0"), ("+17", "17"), (".25", "0.25"), ("-.5E+2", "-0.5E+2"), ("5.", "5"), ("+5.e-1", "5e-1"),
      ("0x1F", "31"), ("-0Xff", "-255"), ("12345678901234567890", "12345678901234567890"), ("1.50", "1.50"),
      ("0e+1", "0e+1"),
    ])
    write(text, json)
  }

  private mutating func name() {
    let (text, json) = pick([
      ("a", "a"), ("$_1", "$_1"), ("null", "null"), ("ünal", "ünal"), ("\\u0061b", "ab"), ("e\u{301}", "e\u{301}"),
    ])
    write(text, "\"\(json)\"")
  }

  private mutating func string() {
    let quote = pick(["\"", "'"])
    write(quote, "\"")
    while !once(in: 4) {
      let (text, json) = pick([
        ("a", "a"), ("e\u{301}", "e\u{301}"), ("👨‍👩‍👧", "👨‍👩‍👧"), ("\\\n", ""), ("\\\r\n", ""), ("\\\r", ""),
        ("\\\u{2028}", ""),
        ("\t", "\\u0009"), ("\\u00e9", "é"), ("\\ud83d\\ude00", "😀"), ("\\x41", "A"), ("\\v", "\\u000b"),
        ("\\0x", "\\u0000x"), ("\\'", "'"), ("\\\"", "\\\""), ("\\\\", "\\\\"), ("\\q", "q"), ("//", "//"), ("{", "{"),
        ("\\n", "\\u000a"), ("\u{2029}", "\u{2029}"),
      ])
      write(text, json)
    }
    write(quote, "\"")
  }
}
