/// The decoder for a value of a coded tree.
final class CodedDecoder: Decoder {
  private let place: CodedReading

  init(_ place: CodedReading) { self.place = place }

  /// Decodes the value of a whole tree.
  static func value<T: Decodable>(of tree: CodedTree, _ type: T.Type, context: Any?) throws -> T {
    do {
      return try untranslatedValue(of: tree, type, context: context)
    } catch let error as DecodingError {
      throw ArchiveError(error, in: type)
    }
  }

  /// As `value`, but throws the `DecodingError`s themselves.
  static func untranslatedValue<T: Decodable>(of tree: CodedTree, _ type: T.Type, context: Any?) throws -> T {
    try CodedReading(tree: tree, context: context, entry: 0, step: .root, depth: tree.depth).decode(type)
  }

  var codingPath: [any CodingKey] { place.codingPath }
  var userInfo: [CodingUserInfoKey: Any] { place.context.map { [.archiveContext: $0] } ?? [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(try CodedKeyedDecoding<Key>(place))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try CodedUnkeyedDecoding(place) }
  func singleValueContainer() -> any SingleValueDecodingContainer { CodedSingleDecoding(place: place) }
}

/// A value of a tree that is being read, with its path.
struct CodedReading {
  let tree: CodedTree
  let context: Any?
  /// The entry in the tree; nil if it is for a superclass's values and none were saved, which reads as nil.
  let entry: Int?
  let step: CodedStep
  let depth: Int

  var codingPath: [any CodingKey] { .init(step.path) }

  /// - Parameter path: The path of this value, created once for everything inside.
  func inner(_ key: any CodingKey, _ entry: Int?, in path: CodedPath?) -> CodedReading {
    CodedReading(tree: tree, context: context, entry: entry, step: CodedStep(key: key, outer: path), depth: depth + 1)
  }

  var isNil: Bool {
    get throws {
      guard let entry else { return true }
      return try tree.head(entry).tag == .null
    }
  }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    // Bytes can't nest deeper than the tree, whose depth was checked. But a type's initialiser can decode itself again.
    guard depth <= tree.limits.levels(2) else {
      throw ArchiveError(.limit, "Coded values are nested more than \(tree.limits.depth) levels deep")
    }
    guard Self.isPrimitive(type) else { return try T(from: CodedDecoder(self)) }
    return try primitive(type)
  }

  func missing(_ type: Any.Type) -> DecodingError {
    .valueNotFound(type, .init(codingPath: codingPath, debugDescription: "found nil instead"))
  }

  func misfit(_ type: Any.Type, _ found: String) -> DecodingError {
    .typeMismatch(type, .init(codingPath: codingPath, debugDescription: "\(found) was saved where \(type) is expected"))
  }

  /// Returns the entry of a list or an object, and the number of its elements.
  func opened(_ wanted: CodedTag, as type: Any.Type) throws -> (entry: Int, count: Int) {
    guard let entry else { throw missing(type) }
    let (tag, count) = try tree.head(entry)
    if tag == .null { throw missing(type) }
    guard tag == wanted else {
      throw misfit(type, try tree.leaf(entry)?.text ?? (tag == .array ? "a list" : "an object"))
    }
    return (entry, count)
  }
}

// MARK: Containers

// Each container has one generic method, which also implements the requirements for the individual types.

private struct CodedKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
  private let place: CodedReading
  private let path: CodedPath?
  private let fields: [(key: Int, entry: Int)]
  /// Entries by key, if there are too many fields for a linear search.
  private let places: [String: Int]
  private static var few: Int { 16 }

  init(_ place: CodedReading) throws {
    self.place = place
    path = place.step.path
    let (entry, count) = try place.opened(.object, as: [String: Any].self)
    fields = place.tree.fields(of: entry, count: count)
    let keys = place.tree.keys
    let all = count > Self.few ? fields.map { (keys[$0.key], $0.entry) } : []
    // Keys with different bytes can be equal strings.
    places = Dictionary(all) { first, _ in first }
  }

  var codingPath: [any CodingKey] { place.codingPath }
  var allKeys: [Key] { fields.compactMap { Key(stringValue: place.tree.keys[$0.key]) } }

  private func find(_ key: any CodingKey) -> Int? {
    let wanted = key.stringValue
    guard fields.count <= Self.few else { return places[wanted] }
    return fields.first { place.tree.keys[$0.key] == wanted }?.entry
  }

  private func inner(_ key: Key) throws -> CodedReading {
    guard let entry = find(key) else {
      throw DecodingError.keyNotFound(key, .init(codingPath: codingPath, debugDescription: "there is no such key"))
    }
    return place.inner(key, entry, in: path)
  }

  func contains(_ key: Key) -> Bool { find(key) != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try inner(key).isNil }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try inner(key).decode(type) }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    KeyedDecodingContainer(try CodedKeyedDecoding<Nested>(inner(key)))
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try CodedUnkeyedDecoding(inner(key))
  }
  func superDecoder() -> any Decoder { CodedDecoder(place.inner(CodedSuper(), find(CodedSuper()), in: path)) }
  func superDecoder(forKey key: Key) -> any Decoder { CodedDecoder(place.inner(key, find(key), in: path)) }
}

private struct CodedUnkeyedDecoding: UnkeyedDecodingContainer {
  private let place: CodedReading
  private let path: CodedPath?
  private let length: Int
  private var next: Int
  private(set) var currentIndex = 0

  init(_ place: CodedReading) throws {
    self.place = place
    path = place.step.path
    let (entry, count) = try place.opened(.array, as: [Any].self)
    length = count
    next = entry + 1
  }

  var codingPath: [any CodingKey] { place.codingPath }
  var count: Int? { length }
  var isAtEnd: Bool { currentIndex >= length }

  /// Advances only if `body` succeeds, so that another type can be tried.
  private mutating func take<R>(_ type: Any.Type, _ body: (CodedReading) throws -> R) throws -> R {
    let inner = place.inner(CodedIndex(currentIndex), next, in: path)
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        type, .init(codingPath: inner.codingPath, debugDescription: "the list has only \(length) elements"))
    }
    let value = try body(inner)
    next = place.tree.after(next)
    currentIndex += 1
    return value
  }

  mutating func decodeNil() throws -> Bool {
    let inner = place.inner(CodedIndex(currentIndex), next, in: path)
    guard !isAtEnd else { return try take(Any?.self) { try $0.isNil } }
    guard try inner.isNil else { return false }
    return try take(Any?.self) { try $0.isNil }
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try take(type) { try $0.decode(type) } }

  mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
    try take(type) { KeyedDecodingContainer(try CodedKeyedDecoding<Nested>($0)) }
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try take([Any].self) { try CodedUnkeyedDecoding($0) }
  }

  mutating func superDecoder() throws -> any Decoder { try take((any Decoder).self) { CodedDecoder($0) } }
}

private struct CodedSingleDecoding: SingleValueDecodingContainer {
  let place: CodedReading

  var codingPath: [any CodingKey] { place.codingPath }

  // This method can't throw. The tree was validated when it was created, so reading an entry doesn't fail.
  func decodeNil() -> Bool { (try? place.isNil) ?? false }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    // A level of calls, though not of the tree.
    try CodedReading(
      tree: place.tree, context: place.context, entry: place.entry, step: place.step, depth: place.depth + 1
    )
    .decode(type)
  }
}
