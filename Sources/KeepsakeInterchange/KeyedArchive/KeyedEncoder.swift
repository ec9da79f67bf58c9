public import Foundation

extension KeyedArchive {
  /// Writes a keyed archive that Foundation's `NSKeyedUnarchiver` can read, with secure coding, and that `decode` can
  /// read back.
  ///
  ///     let bytes = try KeyedArchive.encode(hero, classes: ["GameObject": GameObject.self])
  ///
  /// Values of the named types become objects of those classes, with their values under their keys. Arrays, sets and
  /// dictionaries become Foundation's; other types with keys become dictionaries. An object's numbers and flags are
  /// written so that `decodeInteger(forKey:)` and the like find them, everything else for `decodeObject(of:forKey:)`.
  /// An object of a class is written once, however many references lead to it. Equal values give equal bytes, except if
  /// a set or dictionary has another order.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key of the value at the top.
  ///   - classes: The types whose values become objects, by the names of their classes in the archive.
  ///   - format: The format of the property list.
  ///   - limits: The limits that the property list must keep.
  /// - Returns: The bytes of the archive.
  /// - Throws: `PropertyListError`: `unwritable` with the path for a named type without keys, and for a value that the
  ///   format doesn't have; `cycle` for objects that refer to each other, which `Codable` can't encode; `limit` beyond
  ///   the limits or for values nested more than 128 deep; and errors of the types.
  public static func encode<Value: Encodable>(
    _ value: Value, key: String = "root", classes: [String: any Encodable.Type] = [:],
    as format: PropertyList.Format = .binary,
    limits: PropertyListLimits = .standard
  ) throws -> Data {
    let session = KeyedEncodingSession(classes)
    let root: KeyedBox
    do {
      root = try KeyedEncoding(session: session, box: KeyedBox(), path: []).box(value)
    } catch EncodingError.invalidValue(_, let context) {
      throw PropertyListError(.unwritable, context.debugDescription, path: KeyedEncoding.text(context.codingPath))
    }
    return try KeyedAssembly.list(root, key: key).encoded(as: format, limits: limits)
  }
}

/// The state shared by all values of one encoding.
final class KeyedEncodingSession {
  private var names: [ObjectIdentifier: String] = [:]
  /// The boxes of objects that were already encoded.
  var boxes: [ObjectIdentifier: KeyedBox] = [:]
  var open: Set<ObjectIdentifier> = []
  /// Retained, so that no other object gets the identity of an encoded one.
  var kept: [AnyObject] = []

  init(_ classes: [String: any Encodable.Type]) {
    // If a type has several names, the alphabetically first is used, so that the bytes don't depend on the dictionary's
    // order.
    for (name, type) in classes.sorted(by: { $0.key > $1.key }) { names[ObjectIdentifier(type)] = name }
  }

  /// Returns the name of a value's type and of its named superclasses; empty if the type has no name.
  func ancestry(of value: Any) -> [String] {
    guard let name = names[ObjectIdentifier(type(of: value))] else { return [] }
    var ancestry = [name]
    var mirror = type(of: value) is AnyClass ? Mirror(reflecting: value).superclassMirror : nil
    while let above = mirror {
      if let name = names[ObjectIdentifier(above.subjectType)] { ancestry.append(name) }
      mirror = above.superclassMirror
    }
    return ancestry
  }
}

/// The encoder for a value that is written into a box.
struct KeyedEncoding: Encoder {
  let session: KeyedEncodingSession
  let box: KeyedBox
  let path: [any CodingKey]

  var codingPath: [any CodingKey] { path }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  static func text(_ path: [any CodingKey]) -> String {
    PathText.text(path.map { key in key.intValue.map { .index($0) } ?? .key(key.stringValue) })
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    if box.content == nil { box.content = .fields([]) }
    return KeyedEncodingContainer(KeyedEncodingFields<Key>(place: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    if box.content == nil { box.content = .list([]) }
    return KeyedEncodingElements(place: self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  func inner(_ key: any CodingKey) -> KeyedEncoding {
    KeyedEncoding(session: session, box: KeyedBox(), path: path + [key])
  }

  /// Returns the box of a value: this encoder's, or that of an object that was already encoded.
  func box<T: Encodable>(_ value: T) throws -> KeyedBox {
    guard path.count <= KeyedLocation.mostLevels else {
      throw PropertyListError(
        .limit, "Values are nested more than \(KeyedLocation.mostLevels) deep", path: Self.text(path))
    }
    if let leaf = Self.leaf(value) {
      box.content = leaf
      return box
    }
    guard !(value is any FixedWidthInteger) else {
      throw PropertyListError(
        .unwritable, "The integer \(value) takes more than 128 bits with its sign", path: Self.text(path))
    }
    guard type(of: value) is AnyClass else { return try fill(value) }
    let object = value as AnyObject
    let id = ObjectIdentifier(object)
    guard !session.open.contains(id) else {
      throw PropertyListError(
        .cycle,
        """
        An object of the class \(type(of: value)) refers back to itself, which Codable can't encode: leave out the \
        key that refers back
        """,
        path: Self.text(path))
    }
    if let known = session.boxes[id] { return known }
    session.open.insert(id)
    defer { session.open.remove(id) }
    session.kept.append(object)
    let box = try fill(value)
    session.boxes[id] = box
    return box
  }

  private func fill<T: Encodable>(_ value: T) throws -> KeyedBox {
    try value.encode(to: self)
    let ancestry = session.ancestry(of: value)
    switch (box.content, Mirror(reflecting: value).displayStyle) {
    case (nil, _): box.content = .fields([])
    case (.list(let elements), .set): box.content = .set(elements)
    case (.list(let elements), .dictionary): box.content = .pairs(elements)
    default: break
    }
    guard !ancestry.isEmpty else { return box }
    guard case .fields = box.content else {
      throw PropertyListError(
        .unwritable,
        "\(T.self) was listed as a class, but encodes itself without keys, and an object needs values under keys",
        path: Self.text(path))
    }
    box.ancestry = ancestry
    return box
  }

  private static func leaf(_ value: Any) -> KeyedBox.Content? {
    switch value {
    case let value as Bool: .bool(value)
    case let value as any FixedWidthInteger: Int128(exactly: value).map { .integer($0) }
    case let value as Double: .number(value)
    case let value as Float: .float(value)
    case let value as String: .string(value)
    case let value as Data: .data(value)
    case let value as Date: .date(value)
    case let value as URL: .url(value)
    case let value as UUID: .uuid(value)
    case let value as Decimal: .decimal(value)
    default: nil
    }
  }
}

extension KeyedEncoding: SingleValueEncodingContainer {
  func encodeNil() { box.content = .null }

  func encode<T: Encodable>(_ value: T) throws {
    let inner = try KeyedEncoding(session: session, box: KeyedBox(), path: path).box(value)
    box.content = inner.content
    box.ancestry = inner.ancestry
  }
}

private struct KeyedEncodingFields<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let place: KeyedEncoding

  var codingPath: [any CodingKey] { place.path }

  private func put(_ key: any CodingKey, _ value: KeyedBox) { place.box.add(key.stringValue, value) }

  func encodeNil(forKey key: Key) { put(key, KeyedBox(.null)) }
  func encode<T: Encodable>(_ value: T, forKey key: Key) throws { put(key, try place.inner(key).box(value)) }

  // Foundation's archiver also writes objects that are nil, and its unarchiver treats a missing one as damage.

  func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
    if let value { try encode(value, forKey: key) } else { encodeNil(forKey: key) }
  }

  func encodeIfPresent(_ value: String?, forKey key: Key) throws {
    if let value { try encode(value, forKey: key) } else { encodeNil(forKey: key) }
  }

  private func opened(_ key: any CodingKey) -> KeyedEncoding {
    let inner = place.inner(key)
    put(key, inner.box)
    return inner
  }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested>
  {
    opened(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { opened(key).unkeyedContainer() }

  /// A class and its superclasses share the keys of their object.
  func superEncoder() -> any Encoder { place }
  func superEncoder(forKey key: Key) -> any Encoder { opened(key) }
}

private struct KeyedEncodingElements: UnkeyedEncodingContainer {
  let place: KeyedEncoding

  var codingPath: [any CodingKey] { place.path }
  var count: Int { place.box.count }

  func encodeNil() { place.box.add(KeyedBox(.null)) }
  func encode<T: Encodable>(_ value: T) throws { place.box.add(try place.inner(KeyedName(count)).box(value)) }

  private func opened() -> KeyedEncoding {
    let inner = place.inner(KeyedName(count))
    place.box.add(inner.box)
    return inner
  }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    opened().container(keyedBy: type)
  }
  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { opened().unkeyedContainer() }
  func superEncoder() -> any Encoder { opened() }
}
