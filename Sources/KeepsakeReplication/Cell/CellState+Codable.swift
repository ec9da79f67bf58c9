// {"generation": 2, "value": {"max": {"int": 6}}}, without the generation if it is 0.
extension CellState: Codable {
  private enum CodingKeys: String, CodingKey {
    case generation, value
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    generation = try container.decodeIfPresent(UInt64.self, forKey: .generation) ?? 0
    value = try container.decode(CellValue.self, forKey: .value)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    if generation > 0 { try container.encode(generation, forKey: .generation) }
    try container.encode(value, forKey: .value)
  }
}

// One object with the key and the state: {"collection": "progress", "key": "level", "value": {"max": {"int": 6}}}
extension CellUpdate: Codable {
  private enum CodingKeys: String, CodingKey {
    case collection, key
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    key = CellKey(
      collection: try container.decode(String.self, forKey: .collection),
      key: try container.decode(String.self, forKey: .key))
    state = try CellState(from: decoder)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(key.collection, forKey: .collection)
    try container.encode(key.key, forKey: .key)
    try state.encode(to: encoder)
  }
}
