#if Cloud
import KeepsakeReplication

extension PlainForm.Loss {
  /// How many of what was lost: "1 set, as a list", "2 sets, as lists".
  var counted: String {
    for words in Self.words where what.hasPrefix(words.one) || what.hasPrefix(words.many) {
      let rest = what.dropFirst(what.hasPrefix(words.many) ? words.many.count : words.one.count)
      guard rest.first.map({ $0 == "," || $0 == " " }) ?? true else { continue }
      let end = count == 1 ? words.ends[String(rest)] ?? String(rest) : String(rest)
      return CountText.of(count, words.one, plural: words.many) + end
    }
    return "\(count) \(what)"
  }

  /// What is lost, of one and of several; `ends` has what follows it, where that is different for one.
  private struct Words {
    var one: String
    var many: String
    var ends: [String: String] = [:]

    init(_ one: String, _ many: String, _ ends: [String: String] = [:]) {
      (self.one, self.many, self.ends) = (one, many, ends)
    }
  }

  private static let words = [
    Words("number that isn't finite", "numbers that aren't finite"), Words("decimal number", "decimal numbers"),
    Words("UUID", "UUIDs"), Words("URL", "URLs"), Words("UID", "UIDs", [", as numbers": ", as a number"]),
    Words("set", "sets", [", as lists": ", as a list"]), Words("null", "nulls"),
    Words("date beyond the calendar", "dates beyond the calendar"), Words("date", "dates"),
    Words("fraction of a second", "fractions of seconds"),
    Words("part of a millisecond", "parts of milliseconds"),
    Words(
      "reference to an object", "references to an object",
      [" that is written elsewhere, as copies of it": " that is written elsewhere, as a copy of it"]),
    Words("whole number as a key", "whole numbers as keys"),
    Words(
      "dictionary with keys that aren't text", "keys that aren't text",
      [", as lists of pairs": ", as a list of pairs"]),
    Words("value of the class", "values of the class"),
    Words("list of the classes above", "lists of the classes above"),
    Words("hint naming a substitute class", "hints naming substitute classes"),
    Words("key beside those of the archive itself", "keys beside those of the archive itself"),
    Words("field that isn't shown", "fields that aren't shown"),
    Words("field that wasn't there", "fields that weren't there"),
    Words(
      "value at the top", "values at the top",
      [", which come back in a dictionary": ", which comes back in a dictionary"]),
    Words("object that nothing refers to", "objects that nothing refers to"),
    Words("key beside those of a class", "keys beside those of a class"),
    Words(
      "number of 32 bits", "numbers of 32 bits", [", which come back with 64": ", which comes back with 64"]),
    Words("key that occurs twice", "keys that occur twice"),
  ]
}
#endif
