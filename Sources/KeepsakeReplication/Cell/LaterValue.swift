package import Foundation

/// Names one value of a later rule.
package enum LaterValueKind {}
package typealias LaterValueID = Identifier<LaterValueKind>

/// What was written by rules that came after the protocol's first ones, and that this program doesn't know: carried as it came.
///
/// Whoever doesn't know a rule can't join its values. They stand beside each other until a program that knows it makes one of them, and says
/// which ones went into it: these give way to it, and others that it hadn't seen stay beside it. So nothing is lost whoever carries it, and
/// nobody has to send again.
package struct LaterValue: Hashable, Sendable {
  /// One value as it was written.
  package struct Entry: Hashable, Sendable {
    package var rule: String
    /// In a form that only the rule knows.
    package var content: Data
    /// The values that went into this one.
    package var over: Set<LaterValueID>

    package init(rule: String, content: Data, over: Set<LaterValueID> = []) {
      self.rule = rule
      self.content = content
      self.over = over
    }
  }

  /// What stands beside each other.
  package private(set) var entries: [LaterValueID: Entry]

  package init(_ entries: [LaterValueID: Entry]) {
    let over = entries.values.reduce(into: Set<LaterValueID>()) { $0.formUnion($1.over) }
    let left = entries.filter { !over.contains($0.key) }
    // Values that went into each other are nobody's, but they must not take all with them.
    self.entries = left.isEmpty ? entries : left
  }

  /// What stands in either and didn't go into a value of the other.
  func joined(with other: LaterValue) -> LaterValue {
    LaterValue(entries.merging(other.entries) { $0.joined(with: $1) })
  }

  /// In words: what can't be joined here.
  package var ruleName: String { Set(entries.values.map(\.rule)).sorted().joined(separator: ", ") }

  /// Roughly the bytes it takes.
  var size: Int { entries.values.reduce(0) { $0 + $1.rule.utf8.count + $1.content.count + 48 + $1.over.count * 36 } }

  /// Why it can't be kept or sent; nil if it can.
  var objection: String? {
    let areNames = entries.values.allSatisfy { ExchangeRules.isName($0.rule, ExchangeRules.maximumCollectionBytes) }
    guard areNames, !entries.isEmpty else { return "a later rule has no name, or one that is too long or has control characters" }
    return nil
  }
}

extension LaterValue.Entry {
  /// Itself, or what two values of one name have together: nobody writes such, but they have to end alike everywhere.
  fileprivate func joined(with other: Self) -> Self {
    // Names are their bytes: two spellings of one letter are two names.
    let (mine, theirs) = (Array(rule.utf8), Array(other.rule.utf8))
    let isLess = mine != theirs ? mine.lexicographicallyPrecedes(theirs) : content.lexicographicallyPrecedes(other.content)
    var joined = isLess ? other : self
    joined.over = over.union(other.over)
    return joined
  }
}

// {"later": [{"content": "AQI=", "id": "...", "over": ["..."], "rule": "quorum"}]}, sorted by id.
extension LaterValue: Codable {
  private struct StoredEntry: Codable {
    private enum CodingKeys: String, CodingKey {
      case id, rule, content, over
    }

    var id: LaterValueID
    var entry: Entry

    init(id: LaterValueID, entry: Entry) { (self.id, self.entry) = (id, entry) }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      id = try container.decode(LaterValueID.self, forKey: .id)
      entry = Entry(
        rule: try container.decode(String.self, forKey: .rule), content: try container.decode(Data.self, forKey: .content),
        over: Set(try container.decodeList(forKey: .over)))
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(id, forKey: .id)
      try container.encode(entry.rule, forKey: .rule)
      try container.encode(entry.content, forKey: .content)
      try container.encodeUnlessEmpty(entry.over.sorted(), forKey: .over)
    }
  }

  package init(from decoder: any Decoder) throws {
    let present = try decoder.singleValueContainer().decode([StoredEntry].self)
    self.init(Dictionary(present.map { ($0.id, $0.entry) }, uniquingKeysWith: { $0.joined(with: $1) }))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(entries.sorted { $0.key < $1.key }.map { StoredEntry(id: $0.key, entry: $0.value) })
  }
}
