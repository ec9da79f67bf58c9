/// The encoder for a value of a coded tree.
///
/// An error in a method that can't throw, such as a second container of another kind, is kept and thrown by the next
/// method that can throw.
final class CodedEncoder: Encoder {
  let scope: CodedWriting
  @exclusivity(unchecked) private var node: CodedNode?

  init(_ scope: CodedWriting) { self.scope = scope }

  /// Returns the bytes of a whole tree.
  ///
  /// - Parameter depth: The number of levels of the archive around the value.
  static func bytes<T: Encodable>(of value: T, depth: Int, limits: ArchiveLimits) throws -> [UInt8] {
    do {
      let state = CodedWriting.State(limits)
      let scope = CodedWriting(state: state, step: .root, depth: depth)
      // As in JSON, only a nested value may encode nothing.
      let node = try scope.node(of: value, ifNothing: nil)
      if let problem = state.problem { throw problem }
      return try CodedTreeWriter.bytes(of: node, keys: state.keys)
    } catch let error as EncodingError {
      throw ArchiveError(error, in: T.self)
    }
  }

  /// The encoded value; an object without fields if nothing was encoded.
  var result: CodedNode { node ?? .object(CodedFields()) }
  var hasResult: Bool { node != nil }

  var codingPath: [any CodingKey] { scope.codingPath }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    let fields: CodedFields
    if case .object(let known) = node {
      fields = known
    } else {
      fields = CodedFields()
      if node == nil { node = .object(fields) } else { scope.failOnSecond() }
    }
    return KeyedEncodingContainer(CodedKeyedEncoding<Key>(scope: scope, fields: fields))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    let list: CodedList
    if case .list(let known) = node {
      list = known
    } else {
      list = CodedList()
      if node == nil { node = .list(list) } else { scope.failOnSecond() }
    }
    return CodedUnkeyedEncoding(scope: scope, list: list)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { CodedSingleEncoding(encoder: self) }

  fileprivate func set(_ new: CodedNode) throws {
    if node != nil { scope.failOnSecond() }
    if let problem = scope.state.problem { throw problem }
    node = new
  }
}

/// A value of a tree that is being created, with its path, and the state that all values share.
struct CodedWriting {
  /// Used on one thread, by one value after the other, so it needs no run-time exclusivity checks.
  final class State {
    let limits: ArchiveLimits
    @exclusivity(unchecked) var keys = CodedKeys()
    @exclusivity(unchecked) private var values = 0
    /// The first error that occurred where nothing could be thrown.
    @exclusivity(unchecked) fileprivate(set) var problem: ArchiveError?

    /// Types that are known to have a defined order. Checking a type's conformance takes longer than a lookup.
    @exclusivity(unchecked) private var ordered: Set<ObjectIdentifier> = []
    @exclusivity(unchecked) private var lastOrdered: ObjectIdentifier?

    init(_ limits: ArchiveLimits) { self.limits = limits }

    func mayBeUnordered<T>(_ type: T.Type) -> Bool {
      let id = ObjectIdentifier(type)
      if id == lastOrdered { return false }
      if !ordered.contains(id) {
        // A cast looks through an optional, so for optionals the value has to be checked.
        if type is any CodedUnordered.Type || type is any CodedOptional.Type { return true }
        ordered.insert(id)
      }
      lastOrdered = id
      return false
    }

    /// Counts a value. Stops values that keep producing further values, which the depth limit alone would not.
    func count() throws {
      if let problem { throw problem }
      values += 1
      guard values <= limits.codedValues else {
        throw ArchiveError(.limit, "A coded value contains more than \(limits.codedValues) values")
      }
    }
  }

  let state: State
  let step: CodedStep
  let depth: Int

  var codingPath: [any CodingKey] { .init(step.path) }

  /// - Parameter path: The path of this value, created once for everything inside.
  func inner(_ key: any CodingKey, in path: CodedPath?) -> CodedWriting {
    CodedWriting(state: state, step: CodedStep(key: key, outer: path), depth: depth + 1)
  }

  /// Returns a primitive value inside this one; nil if the value isn't primitive.
  func leaf<T>(of value: T) throws -> CodedLeaf? {
    guard let leaf = CodedLeaf.of(value) else { return nil }
    try state.count()
    guard depth < state.limits.depth else { throw tooDeep() }
    return try checked(leaf)
  }

  /// - Parameter ifNothing: The node for a value that encodes nothing; nil if that is an error.
  func node<T: Encodable>(of value: T, ifNothing: CodedNode?) throws -> CodedNode {
    try state.count()
    guard depth <= state.limits.depth else { throw tooDeep() }
    if let leaf = CodedLeaf.of(value) { return .leaf(try checked(leaf)) }
    if state.mayBeUnordered(T.self), let unordered = value as? any CodedUnordered,
      let node = try unordered.codedNode(in: self)
    {
      return node
    }
    let encoder = CodedEncoder(self)
    try value.encode(to: encoder)
    if encoder.hasResult { return encoder.result }
    guard let ifNothing else {
      throw EncodingError.invalidValue(
        value, .init(codingPath: codingPath, debugDescription: "its encode(to:) encodes nothing"))
    }
    return ifNothing
  }

  func checked(_ leaf: CodedLeaf) throws -> CodedLeaf {
    let length: Int
    switch leaf {
    case .string(let text), .url(let text): length = text.utf8.count
    case .data(let data): length = data.count
    default: return leaf
    }
    guard length <= state.limits.stringBytes else {
      throw ArchiveError(
        .limit, "A string or data value takes \(length) bytes; the limit is \(state.limits.stringBytes)")
    }
    return leaf
  }

  /// Returns whether a container may be opened here. A container that may not isn't added to the tree, so that the tree
  /// stays within the limit.
  func mayNest() -> Bool {
    guard state.problem == nil, depth <= state.limits.depth else {
      if state.problem == nil { state.problem = tooDeep() }
      return false
    }
    return true
  }

  func failOnSecond() {
    guard state.problem == nil else { return }
    state.problem = ArchiveError(
      .unsupported, "A value was encoded twice, or in containers of different kinds\(place)")
  }

  private func tooDeep() -> ArchiveError {
    ArchiveError(
      .limit,
      """
      Coded values are nested more than \(state.limits.depth) levels deep, or refer to themselves: mark the types \
      @Archivable to keep references
      """)
  }

  private var place: String {
    codingPath.codedText.map { " at \($0)" } ?? ""
  }
}

/// Sets, and dictionaries with keys other than strings, are encoded in an order that is the same in every process.
protocol CodedUnordered {
  /// Returns nil if the type's own encoding has a defined order.
  func codedNode(in scope: CodedWriting) throws -> CodedNode?
}

extension Set: CodedUnordered where Element: Encodable {
  func codedNode(in scope: CodedWriting) throws -> CodedNode? {
    let inner = scope.inner(CodedIndex(0), in: scope.step.path)
    return .set(try map { try inner.node(of: $0, ifNothing: .object(CodedFields())) })
  }
}

extension Dictionary: CodedUnordered where Key: Encodable, Value: Encodable {
  func codedNode(in scope: CodedWriting) throws -> CodedNode? {
    // For these keys, `Dictionary` uses a keyed container.
    if Key.self == String.self || Key.self == Int.self || Key.self is any CodingKeyRepresentable.Type { return nil }
    let inner = scope.inner(CodedIndex(0), in: scope.step.path)
    return .pairs(
      try map { key, value in
        (
          try inner.node(of: key, ifNothing: .object(CodedFields())),
          try inner.node(of: value, ifNothing: .object(CodedFields()))
        )
      })
  }
}

// MARK: Containers

// Each container has one generic method, which also implements the requirements for the individual types.

/// Identifies optionals by their type, because casts of a value look through optionals.
private protocol CodedOptional {}
extension Optional: CodedOptional {}

private struct CodedKeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let scope: CodedWriting
  let fields: CodedFields
  private var path: CodedPath?
  private var hasPath = false

  init(scope: CodedWriting, fields: CodedFields) { (self.scope, self.fields) = (scope, fields) }

  /// Creates the path when the first value needs it.
  private mutating func inner(_ key: any CodingKey) -> CodedWriting {
    if !hasPath { (path, hasPath) = (scope.step.path, true) }
    return scope.inner(key, in: path)
  }

  var codingPath: [any CodingKey] { scope.codingPath }

  private func set(_ node: CodedNode, _ key: any CodingKey) {
    fields.set(node, scope.state.keys.number(key.stringValue))
  }

  mutating func encodeNil(forKey key: Key) throws {
    try scope.state.count()
    set(.leaf(.null), key)
  }

  mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    if let leaf = try scope.leaf(of: value) { return set(.leaf(leaf), key) }
    set(try inner(key).node(of: value, ifNothing: .object(CodedFields())), key)
  }

  mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key)
    -> KeyedEncodingContainer<Nested>
  {
    let inner = inner(key)
    var nested = CodedFields()
    switch fields.node(scope.state.keys.number(key.stringValue)) {
    case .object(let known): nested = known
    case nil: if inner.mayNest() { set(.object(nested), key) }
    default: inner.failOnSecond()
    }
    return KeyedEncodingContainer(CodedKeyedEncoding<Nested>(scope: inner, fields: nested))
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    let inner = inner(key)
    var nested = CodedList()
    switch fields.node(scope.state.keys.number(key.stringValue)) {
    case .list(let known): nested = known
    case nil: if inner.mayNest() { set(.list(nested), key) }
    default: inner.failOnSecond()
    }
    return CodedUnkeyedEncoding(scope: inner, list: nested)
  }

  mutating func superEncoder() -> any Encoder { encoder(CodedSuper()) }
  mutating func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }

  private mutating func encoder(_ key: any CodingKey) -> CodedEncoder {
    let encoder = CodedEncoder(inner(key))
    if encoder.scope.mayNest() { set(.later(encoder), key) }
    return encoder
  }
}

private struct CodedUnkeyedEncoding: UnkeyedEncodingContainer {
  let scope: CodedWriting
  let list: CodedList
  private var path: CodedPath?
  private var hasPath = false

  init(scope: CodedWriting, list: CodedList) { (self.scope, self.list) = (scope, list) }

  /// Creates the path when the first value needs it.
  private mutating func next() -> CodedWriting {
    if !hasPath { (path, hasPath) = (scope.step.path, true) }
    return scope.inner(CodedIndex(count), in: path)
  }

  var codingPath: [any CodingKey] { scope.codingPath }
  var count: Int { list.nodes.count }

  mutating func encodeNil() throws {
    try scope.state.count()
    list.nodes.append(.leaf(.null))
  }

  mutating func encode<T: Encodable>(_ value: T) throws {
    if let leaf = try scope.leaf(of: value) { return list.nodes.append(.leaf(leaf)) }
    list.nodes.append(try next().node(of: value, ifNothing: .object(CodedFields())))
  }

  mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    let inner = next()
    let nested = CodedFields()
    if inner.mayNest() { list.nodes.append(.object(nested)) }
    return KeyedEncodingContainer(CodedKeyedEncoding<Nested>(scope: inner, fields: nested))
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    let inner = next()
    let nested = CodedList()
    if inner.mayNest() { list.nodes.append(.list(nested)) }
    return CodedUnkeyedEncoding(scope: inner, list: nested)
  }

  mutating func superEncoder() -> any Encoder {
    let encoder = CodedEncoder(next())
    if encoder.scope.mayNest() { list.nodes.append(.later(encoder)) }
    return encoder
  }
}

private struct CodedSingleEncoding: SingleValueEncodingContainer {
  let encoder: CodedEncoder

  var codingPath: [any CodingKey] { encoder.codingPath }

  mutating func encodeNil() throws {
    try encoder.scope.state.count()
    try encoder.set(.leaf(.null))
  }

  mutating func encode<T: Encodable>(_ value: T) throws {
    let scope = encoder.scope
    // A level of calls, though not of the tree.
    let inner = CodedWriting(state: scope.state, step: scope.step, depth: scope.depth + 1)
    try encoder.set(try inner.node(of: value, ifNothing: .object(CodedFields())))
  }
}
