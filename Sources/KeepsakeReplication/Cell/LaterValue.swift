package import Foundation

/// Identifies one value of a later rule.
package enum LaterValueKind {}
package typealias LaterValueID = Identifier<LaterValueKind>

/// Values of rules that were added to the protocol later, and that this program doesn't know: passed on unchanged.
///
/// A program that doesn't know a rule can't join its values. They are kept side by side until a program that knows the
/// rule joins them into one, and records which ones went into it: those are replaced by it, and others that it hadn't
/// seen stay beside it. So nothing is lost, whichever device passes it on, and no device has to send again.
package struct LaterValue: Hashable, Sendable {
  /// One value as it was written.
  package struct Entry: Hashable, Sendable {
    package var rule: String
    /// In a form that only the rule understands.
    package var content: Data
    /// The values that went into this one.
    package var over: Set<LaterValueID>

    package init(rule: String, content: Data, over: Set<LaterValueID> = []) {
      self.rule = rule
      self.content = content
      self.over = over
    }
  }

  /// The values that are kept side by side.
  package private(set) var entries: [LaterValueID: Entry]

  package init(_ entries: [LaterValueID: Entry]) {
    let over = entries.values.reduce(into: Set<LaterValueID>()) { $0.formUnion($1.over) }
    let left = entries.filter { !over.contains($0.key) }
    // Values that went into each other replace each other, but that must not remove all of them.
    self.entries = left.isEmpty ? entries : left
  }

  /// Returns the values of both that didn't go into a value of the other.
  func joined(with other: LaterValue) -> LaterValue {
    LaterValue(entries.merging(other.entries) { $0.joined(with: $1) })
  }

  /// The names of the rules that can't be joined here, as text.
  package var ruleName: String { Set(entries.values.map(\.rule)).sorted().joined(separator: ", ") }

  /// The approximate size in bytes.
  var size: Int { entries.values.reduce(0) { $0 + $1.rule.utf8.count + $1.content.count + 48 + $1.over.count * 36 } }

  /// Why the value can't be kept or sent; nil if it can.
  var objection: String? {
    let areNames = entries.values.allSatisfy { NameRule.collection.allows($0.rule) }
    guard areNames, !entries.isEmpty else {
      return "a later rule has no name, or one that is too long or has control characters"
    }
    return nil
  }
}

extension LaterValue.Entry {
  /// Returns the join of two values with the same id. No program writes such values, but the result has to be the same
  /// everywhere.
  fileprivate func joined(with other: Self) -> Self {
    // Names are compared by their bytes: two spellings of one letter are two names.
    let (mine, theirs) = (Array(rule.utf8), Array(other.rule.utf8))
    let isLess =
      mine != theirs ? mine.lexicographicallyPrecedes(theirs) : content.lexicographicallyPrecedes(other.content)
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
        rule: try container.decode(String.self, forKey: .rule),
        content: try container.decode(Data.self, forKey: .content),
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
