import Foundation

/// The values under the keys of an object, a dictionary or a shape.
struct KeyedFieldList {
  let keys: [String]
  private let values: [String: (PropertyList, KeyedContent?)]

  init(_ place: KeyedLocation) throws {
    let pairs: [(String, (PropertyList, KeyedContent?))]
    switch try place.content() {
    case .object(let name, let entries):
      pairs = place.session.names.fields(name, entries).map { ($0.key, ($0.value, nil)) }
    case .fields(let entries): pairs = entries.map { ($0.key, ($0.value, nil)) }
    case .pairs(let keys, let elements):
      pairs = try zip(keys, elements).map { key, element in
        switch try place.session.contents.content(of: key) {
        case .string(let text): return (text, (element, nil))
        case .integer(let number): return ("\(number)", (element, nil))
        case .uuid(let uuid): return (uuid.uuidString, (element, nil))
        default: throw place.misfit([String: Any].self)
        }
      }
    case .shape(let parts): pairs = parts.map { ($0.name, (.null, $0.value)) }
    case .forms(let forms) where forms.fields != nil || !forms.parts.isEmpty:
      pairs = (forms.fields ?? []).map { ($0.key, ($0.value, nil)) } + forms.parts.map { ($0.name, (.null, $0.value)) }
    case .string(let text):
      guard case .shape(let parts) = KeyedShape.content(text) else { throw place.misfit([String: Any].self) }
      pairs = parts.map { ($0.name, (.null, $0.value)) }
    case .null:
      throw DecodingError.valueNotFound(
        [String: Any].self, .init(codingPath: place.path, debugDescription: "found nil instead"))
    default: throw place.misfit([String: Any].self)
    }
    try place.spend(pairs.count / KeyedBudget.lookedThrough)
    keys = pairs.map(\.0)
    values = Dictionary(pairs, uniquingKeysWith: { _, last in last })
  }

  subscript(key: String) -> (PropertyList, KeyedContent?)? { values[key] }
}

struct KeyedFields<Key: CodingKey>: KeyedDecodingContainerProtocol {
  private let place: KeyedLocation
  private let list: KeyedFieldList

  init(place: KeyedLocation, _ list: KeyedFieldList) {
    self.place = place
    self.list = list
  }

  var codingPath: [any CodingKey] { place.path }
  var allKeys: [Key] { list.keys.compactMap { Key(stringValue: $0) } }

  private func inner(_ key: any CodingKey) throws -> KeyedLocation {
    guard let (value, given) = list[key.stringValue] else {
      throw DecodingError.keyNotFound(key, .init(codingPath: place.path, debugDescription: "there is no such key"))
    }
    return place.inner(key, value, given)
  }

  func contains(_ key: Key) -> Bool { list[key.stringValue] != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try inner(key).isNil }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try inner(key).decode(type) }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try inner(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try inner(key).unkeyedContainer()
  }

  /// A class and its superclasses share the keys of their object.
  func superDecoder() throws -> any Decoder { list["super"] == nil ? place : try inner(KeyedName("super")) }
  func superDecoder(forKey key: Key) throws -> any Decoder { try inner(key) }
}

struct KeyedElements: UnkeyedDecodingContainer {
  private let place: KeyedLocation
  private let elements: [(PropertyList, KeyedContent?)]
  private(set) var currentIndex = 0

  init(place: KeyedLocation, _ elements: [(PropertyList, KeyedContent?)]) {
    self.place = place
    self.elements = elements
  }

  var codingPath: [any CodingKey] { place.path }
  var count: Int? { elements.count }
  var isAtEnd: Bool { currentIndex >= elements.count }

  /// Advances only if `body` succeeds, so that another type can be tried.
  private mutating func take<Result>(_ type: Any.Type, _ body: (KeyedLocation) throws -> Result) throws -> Result {
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        type, .init(codingPath: place.path, debugDescription: "the list has only \(elements.count) elements"))
    }
    let (value, given) = elements[currentIndex]
    let result = try body(place.inner(KeyedName(currentIndex), value, given))
    currentIndex += 1
    return result
  }

  mutating func decodeNil() throws -> Bool {
    let isNil = try take(Any?.self) { try $0.isNil }
    if !isNil { currentIndex -= 1 }
    return isNil
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try take(type) { try $0.decode(type) } }

  mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
    try take(type) { try $0.container(keyedBy: type) }
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try take([Any].self) { try $0.unkeyedContainer() }
  }
  mutating func superDecoder() throws -> any Decoder { try take((any Decoder).self) { $0 } }
}

struct KeyedName: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(_ index: Int) {
    stringValue = "\(index)"
    intValue = index
  }

  init(_ text: String) {
    stringValue = text
    intValue = nil
  }

  init?(stringValue: String) { self.init(stringValue) }
  init?(intValue: Int) { self.init(intValue) }
}
