// A readable form that doesn't depend on hashing: {"max": {"int": 6}}, {"union": [...]} and {"counter": [...]} sorted, and so are
// {"dictionary": [{"key": {"string": "cave"}, "value": {"min": {"int": 61}}}]}; {"optional": null} is an optional without a value.
extension CellValue: Codable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case max, min, latest, union, counter, best, set, dictionary, optional, later
  }

  private struct Stamped: Codable {
    var stamp: Stamp
    var value: Scalar
  }

  private struct Entry: Codable {
    var writer: WriterID
    var plus: UInt64
    var minus: UInt64
  }

  package init(from decoder: any Decoder) throws {
    let (container, key) = try decoder.decodeCase(by: CodingKeys.self)
    switch key {
    case .max: self = .max(try container.decode(Scalar.self, forKey: key))
    case .min: self = .min(try container.decode(Scalar.self, forKey: key))
    case .latest:
      let stamped = try container.decode(Stamped.self, forKey: key)
      self = .latest(stamped.stamp, stamped.value)
    case .union: self = .union(Set(try container.decode([Scalar].self, forKey: key)))
    case .counter:
      // A writer that is named twice counts once, by the greater of each: the same as a join.
      var entries: [WriterID: CounterEntry] = [:]
      for entry in try container.decode([Entry].self, forKey: key) {
        let known = entries[entry.writer] ?? CounterEntry()
        entries[entry.writer] = CounterEntry(plus: Swift.max(known.plus, entry.plus), minus: Swift.max(known.minus, entry.minus))
      }
      self = .counter(entries)
    case .best: self = .best(try container.decode(BestScore.self, forKey: key))
    case .set: self = .set(try container.decode(ObservedSet.self, forKey: key))
    case .dictionary:
      try Self.checkDepth(of: decoder)
      // A key that comes twice holds both, as after a join.
      self = .dictionary(
        Dictionary(
          try container.decode([KeyedEntry].self, forKey: key).map { ($0.key, $0.value) }, uniquingKeysWith: { $0.joined(with: $1) }))
    case .optional:
      try Self.checkDepth(of: decoder)
      self = .optional(try container.decodeIfPresent(CellValue.self, forKey: key))
    case .later: self = .later(try container.decode(LaterValue.self, forKey: key))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .max(let value): try container.encode(value, forKey: .max)
    case .min(let value): try container.encode(value, forKey: .min)
    case .latest(let stamp, let value): try container.encode(Stamped(stamp: stamp, value: value), forKey: .latest)
    case .union(let values): try container.encode(values.sorted(), forKey: .union)
    case .counter(let entries):
      let sorted = entries.sorted { $0.key < $1.key }
      try container.encode(
        sorted.map { Entry(writer: $0.key, plus: $0.value.plus, minus: $0.value.minus) }, forKey: .counter)
    case .best(let best): try container.encode(best, forKey: .best)
    case .set(let set): try container.encode(set, forKey: .set)
    case .dictionary(let entries):
      let sorted = entries.sorted { $0.key < $1.key }
      try container.encode(sorted.map { KeyedEntry(key: $0.key, value: $0.value) }, forKey: .dictionary)
    case .optional(let value?): try container.encode(value, forKey: .optional)
    case .optional(nil): try container.encodeNil(forKey: .optional)
    case .later(let later): try container.encode(later, forKey: .later)
    }
  }

  private struct KeyedEntry: Codable {
    var key: Scalar
    var value: CellValue
  }

  /// Before anything inside is read: values that nest without end must not use up the stack.
  private static func checkDepth(of decoder: any Decoder) throws {
    let around = decoder.codingPath.count { key in key is CodingKeys && ["dictionary", "optional"].contains(key.stringValue) }
    guard around < maximumDepth else {
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: tooDeep))
    }
  }
}
