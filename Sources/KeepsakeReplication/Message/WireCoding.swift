// How messages are encoded: empty lists and tables and false flags are omitted, and a missing field counts as empty.
// Unknown fields are ignored, so that a later version can add some.

extension KeyedDecodingContainer {
  func decodeList<Element: Decodable>(forKey key: Key) throws -> [Element] {
    try decodeIfPresent([Element].self, forKey: key) ?? []
  }

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
  /// Decodes values whose only key is the name of their case, such as `{"accepted": ...}`.
  ///
  /// A case that this program doesn't know is an error, and so are two cases at the same time: taking such a value for
  /// another would lose it.
  ///
  /// - Returns: The container, and the key.
  func decodeCase<Key: CodingKey & CaseIterable>(by keys: Key.Type) throws -> (KeyedDecodingContainer<Key>, Key) {
    let container = try container(keyedBy: keys)
    guard let key = container.allKeys.first, container.allKeys.count == 1 else {
      let known = Key.allCases.map(\.stringValue).joined(separator: ", ")
      throw DecodingError.dataCorrupted(.init(codingPath: codingPath, debugDescription: "expected one of \(known)"))
    }
    return (container, key)
  }
}
