// How messages are written: what is empty (a list, a table, false) is left out, and what isn't there is empty. Fields that this
// program doesn't know are passed over, so that a later one may add some.

extension KeyedDecodingContainer {
  func decodeList<Element: Decodable>(forKey key: Key) throws -> [Element] { try decodeIfPresent([Element].self, forKey: key) ?? [] }

  func decodeTable<Value: Decodable>(forKey key: Key) throws -> [String: Value] {
    try decodeIfPresent([String: Value].self, forKey: key) ?? [:]
  }

  func decodeFlag(forKey key: Key) throws -> Bool { try decodeIfPresent(Bool.self, forKey: key) ?? false }
}

extension KeyedEncodingContainer {
  mutating func encodeUnlessEmpty<Value: Collection & Encodable>(_ value: Value, forKey key: Key) throws {
    if !value.isEmpty { try encode(value, forKey: key) }
  }

  mutating func encodeIfTrue(_ flag: Bool, forKey key: Key) throws {
    if flag { try encode(flag, forKey: key) }
  }
}

extension Decoder {
  /// For values that say by their only key which case they are, as `{"accepted": ...}` does: the container, and the key.
  ///
  /// A case that this program doesn't know is an error, and so are two at once: to take such a value for another would lose it.
  func decodeCase<Key: CodingKey & CaseIterable>(by keys: Key.Type) throws -> (KeyedDecodingContainer<Key>, Key) {
    let container = try container(keyedBy: keys)
    guard let key = container.allKeys.first, container.allKeys.count == 1 else {
      let known = Key.allCases.map(\.stringValue).joined(separator: ", ")
      throw DecodingError.dataCorrupted(.init(codingPath: codingPath, debugDescription: "expected one of \(known)"))
    }
    return (container, key)
  }
}
