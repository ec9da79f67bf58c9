/// The decoder that a value of a coded tree is read from.
final class CodedDecoder: Decoder {
  private let place: CodedReading

  init(_ place: CodedReading) { self.place = place }

  /// The value of a whole tree.
  static func value<T: Decodable>(of tree: CodedTree, _ type: T.Type, context: Any?) throws -> T {
    do {
      return try CodedReading(tree: tree, context: context, entry: 0, path: nil, depth: tree.depth).decode(type)
    } catch let error as DecodingError {
      throw ArchiveError(error, in: type)
    }
  }

  var codingPath: [any CodingKey] { .init(place.path) }
  var userInfo: [CodingUserInfoKey: Any] { place.context.map { [.archiveContext: $0] } ?? [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(try CodedKeyedDecoding<Key>(place))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try CodedUnkeyedDecoding(place) }
  func singleValueContainer() -> any SingleValueDecodingContainer { CodedSingleDecoding(place: place) }
}

/// A place in a tree that is read.
struct CodedReading {
  let tree: CodedTree
  let context: Any?
  /// nil where a superclass's values would stand and don't: reads as nil.
  let entry: Int?
  let path: CodedPath?
  let depth: Int

  var codingPath: [any CodingKey] { .init(path) }

  func inner(_ key: any CodingKey, _ entry: Int?) -> CodedReading {
    CodedReading(tree: tree, context: context, entry: entry, path: CodedPath(key, in: path), depth: depth + 1)
  }

  var isNil: Bool {
    get throws {
      guard let entry else { return true }
      return try tree.head(entry).tag == .null
    }
  }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    // Bytes can't lead deeper than the tree is, which is checked. A type whose initialiser decodes itself can.
    guard depth <= tree.limits.depth * 2 else {
      throw ArchiveError(.limit, "Coded values are nested more than \(tree.limits.depth) levels deep")
    }
    if let primitive = type as? any CodedPrimitive.Type, let value = try read(primitive, as: type) { return value }
    return try T(from: CodedDecoder(self))
  }

  /// nil where the type's own `init(from:)` is to be asked.
  private func read<P: CodedPrimitive, T>(_ primitive: P.Type, as type: T.Type) throws -> T? {
    let leaf = try entry.map { try tree.leaf($0) } ?? .null
    if case .null = leaf { throw missing(type) }
    if let leaf, let value = P(leaf) as? T { return value }
    if P.hasOtherForms { return nil }
    guard let leaf else { throw misfit(type, "a list or an object") }
    if leaf.isNumber && P.isNumber {
      throw DecodingError.dataCorrupted(
        .init(codingPath: codingPath, debugDescription: "the saved number \(leaf.text) doesn't fit into \(type)"))
    }
    throw misfit(type, leaf.text)
  }

  func missing(_ type: Any.Type) -> DecodingError {
    .valueNotFound(type, .init(codingPath: codingPath, debugDescription: "there is nil instead"))
  }

  func misfit(_ type: Any.Type, _ found: String) -> DecodingError {
    .typeMismatch(type, .init(codingPath: codingPath, debugDescription: "\(found) was saved where \(type) is expected"))
  }

  /// The entry of a list or an object, and the count of what is inside.
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

// Each has one generic method, which serves for the one of each type as well.

private struct CodedKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
  private let place: CodedReading
  private let fields: [(key: Int, entry: Int)]

  init(_ place: CodedReading) throws {
    self.place = place
    let (entry, count) = try place.opened(.object, as: [String: Any].self)
    fields = place.tree.fields(of: entry, count: count)
  }

  var codingPath: [any CodingKey] { place.codingPath }
  var allKeys: [Key] { fields.compactMap { Key(stringValue: place.tree.keys[$0.key]) } }

  /// Keys ascend by their bytes, and so do their numbers.
  private func find(_ key: any CodingKey) -> Int? {
    let wanted = key.stringValue
    var (low, high) = (0, fields.count)
    while low < high {
      let middle = (low + high) / 2
      let text = place.tree.keys[fields[middle].key]
      if text.utf8.elementsEqual(wanted.utf8) { return fields[middle].entry }
      if text.utf8.lexicographicallyPrecedes(wanted.utf8) { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  private func inner(_ key: Key) throws -> CodedReading {
    guard let entry = find(key) else {
      throw DecodingError.keyNotFound(key, .init(codingPath: codingPath, debugDescription: "there is no such key"))
    }
    return place.inner(key, entry)
  }

  func contains(_ key: Key) -> Bool { find(key) != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try inner(key).isNil }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try inner(key).decode(type) }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
    KeyedDecodingContainer(try CodedKeyedDecoding<Nested>(inner(key)))
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { try CodedUnkeyedDecoding(inner(key)) }
  func superDecoder() -> any Decoder { CodedDecoder(place.inner(CodedSuper(), find(CodedSuper()))) }
  func superDecoder(forKey key: Key) -> any Decoder { CodedDecoder(place.inner(key, find(key))) }
}

private struct CodedUnkeyedDecoding: UnkeyedDecodingContainer {
  private let place: CodedReading
  private let length: Int
  private var next: Int
  private(set) var currentIndex = 0

  init(_ place: CodedReading) throws {
    self.place = place
    let (entry, count) = try place.opened(.array, as: [Any].self)
    length = count
    next = entry + 1
  }

  var codingPath: [any CodingKey] { place.codingPath }
  var count: Int? { length }
  var isAtEnd: Bool { currentIndex >= length }

  /// Goes on only if `body` succeeds, so that another type may be tried.
  private mutating func take<R>(_ type: Any.Type, _ body: (CodedReading) throws -> R) throws -> R {
    let inner = place.inner(CodedIndex(currentIndex), next)
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(type, .init(codingPath: inner.codingPath, debugDescription: "the list has only \(length) elements"))
    }
    let value = try body(inner)
    next = place.tree.after(next)
    currentIndex += 1
    return value
  }

  mutating func decodeNil() throws -> Bool {
    let inner = place.inner(CodedIndex(currentIndex), next)
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

  // Nothing that is read later would show a failure here.
  func decodeNil() -> Bool { (try? place.isNil) ?? false }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    // A level of calls, though not of the tree.
    try CodedReading(tree: place.tree, context: place.context, entry: place.entry, path: place.path, depth: place.depth + 1)
      .decode(type)
  }
}
