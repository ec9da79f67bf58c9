// A readable form that doesn't depend on hashing: {"max": {"int": 6}}, {"union": [...]} and {"counter": [...]} sorted.
extension CellValue: Codable {
  private enum CodingKeys: String, CodingKey {
    case max, min, latest, union, counter, best
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
    let container = try decoder.container(keyedBy: CodingKeys.self)
    guard let key = container.allKeys.first, container.allKeys.count == 1 else {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: decoder.codingPath, debugDescription: "expected one of max, min, latest, union, counter, best"))
    }
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
    }
  }
}
