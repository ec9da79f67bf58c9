public import Foundation

// `@_disfavoredOverload`: a type that is also `Archivable` is decoded as such, with cycles.
extension KeyedArchive {
  /// Decodes an object into a `Codable` type.
  ///
  ///     struct GameObject: Codable {                    // was: @interface GameObject : NSObject <NSCoding>
  ///       enum CodingKeys: String, CodingKey { case name = "_name", level = "_level", items = "_items" }
  ///       var name: String, level: Int, items: [Item]
  ///     }
  ///     let classes: [String: any Decodable.Type] = ["GameObject": GameObject.self, "Item": Item.self]
  ///     let hero = try KeyedArchive.decode(GameObject.self, from: bytes, classes: classes)
  ///
  /// The keys are those of the program that wrote the archive; use `CodingKeys` for different names. Foundation's
  /// collections are decoded as arrays, sets and dictionaries; its points, sizes and rectangles as lists or by `x`,
  /// `width`, `origin` and so on. A saved float fits a declared `Int` if nothing is lost. A class of the archive may
  /// become a struct. If the type of an object is a class, all references to the object lead to a single decoded
  /// object. An archive in an archive's data is decoded if the type isn't `Data`.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - data: The bytes of the archive.
  ///   - key: The key of the value at the top.
  ///   - classes: The types that may be decoded, by the names of classes in the archive. For an object, the entry for
  ///     its class is used, or else that for its nearest superclass with one. Objects are never decoded as any other
  ///     type: an object without such an entry is an error, unless it isn't read.
  ///   - keys: By class in the archive: the archive's key for a coding key. Also applies to subclasses. For types whose
  ///     `CodingKeys` can't be changed.
  ///   - limits: The limits that the archive, and those in its data, must keep.
  /// - Returns: The value.
  /// - Throws: `PropertyListError`: `unknownClass`, `missingValue` and `mismatch` with the path; `cycle` if objects
  ///   refer to each other, which `Codable` can't build but `@Archivable` types can; errors in the bytes; and errors of
  ///   the types' own initialisers.
  @_disfavoredOverload
  public static func decode<Value: Decodable>(
    _ type: Value.Type, from data: Data, key: String = "root", classes: [String: any Decodable.Type] = [:],
    keys: [String: [String: String]] = [:], limits: PropertyListLimits = .standard
  ) throws -> Value {
    try KeyedArchive(data, limits: limits).decode(type, key: key, classes: classes, keys: keys, limits: limits)
  }

  /// Decodes an object in the same way from an archive that has already been read.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - key: The key of the value at the top.
  ///   - classes: The types that may be decoded, by the names of classes in the archive.
  ///   - keys: By class in the archive: the archive's key for a coding key. Also applies to subclasses.
  ///   - limits: The limits that archives in its data must keep.
  /// - Returns: The value.
  /// - Throws: As `decode(_:from:key:classes:keys:limits:)`, but for the errors of reading the bytes.
  @_disfavoredOverload
  public func decode<Value: Decodable>(
    _ type: Value.Type, key: String = "root", classes: [String: any Decodable.Type] = [:],
    keys: [String: [String: String]] = [:],
    limits: PropertyListLimits = .standard
  ) throws -> Value {
    let value = try value(under: key)
    let session = KeyedSession(self, classes, KeyedNames(keys), limits)
    do {
      return try KeyedLocation(session: session, value: value, path: [], depth: 0).decode(type)
    } catch let error as DecodingError {
      throw PropertyListError(error)
    }
  }
}

/// The state shared by all values of one decoding.
final class KeyedSession {
  let contents: KeyedContents
  let classes: [String: any Decodable.Type]
  let names: KeyedNames
  let limits: PropertyListLimits
  let budget: KeyedBudget
  /// Decoded objects of classes, by UID.
  var made: [UInt64: Any] = [:]
  /// Objects whose initialisers are running.
  var open: Set<UInt64> = []

  /// Archives in data, by the data's UID. Each is read once, so that its objects are shared, too.
  var inner: [UInt64: Inner] = [:]

  struct Inner {
    let session: KeyedSession
    let value: PropertyList
  }

  init(
    _ archive: KeyedArchive, _ classes: [String: any Decodable.Type], _ names: KeyedNames, _ limits: PropertyListLimits
  ) {
    contents = KeyedContents(archive)
    self.classes = classes
    self.names = names
    self.limits = limits
    budget = KeyedBudget(archive)
  }

  /// Creates the session of an archive in another one's data.
  init(_ archive: KeyedArchive, within outer: KeyedSession) {
    contents = KeyedContents(archive)
    classes = outer.classes
    names = outer.names
    limits = outer.limits
    budget = outer.budget
  }
}

/// The number of values that a decoding may still create. If the type of an object isn't a class, the object is decoded
/// again for each reference, so a few objects that refer to each other twice would be decoded more often than any
/// machine can count.
final class KeyedBudget {
  /// How often each value of the file may be decoded, on average. In valid archives, most are decoded once.
  private static let times = 16
  /// How often each byte of text or data may be decoded. Many objects may share a long text, and `@Archivable` types
  /// are decoded via an archive, in which each has its own copy.
  private static let timesBytes = 128
  /// The number of values that are only scanned which count as one decoded value.
  static let lookedThrough = 8
  /// The number of additional values allowed for any archive, however small.
  private var left = 100_000
  private var bytesLeft = 16 << 20

  init(_ archive: KeyedArchive) {
    var (count, bytes) = (0, 0)
    var open = archive.objects + archive.top.map(\.value)
    while let value = open.popLast() {
      count += 1
      switch value {
      case .string(let text): bytes += text.utf8.count
      case .data(let data):
        bytes += data.count
        // The data may be an archive, with at most one value per byte.
        if data.starts(with: BinaryFormat.family) || data.starts(with: Data("<?xml".utf8)) { count += data.count }
      case .array(let elements), .set(let elements): open += elements
      case .dictionary(let entries): open += entries.map(\.value)
      default: break
      }
    }
    left += count * Self.times
    bytesLeft += bytes * Self.timesBytes
  }

  /// Counts `count` more values; false if there are too many.
  func take(_ count: Int) -> Bool {
    left -= count
    return left >= 0
  }

  func take(bytes: Int) -> Bool {
    bytesLeft -= bytes
    return bytesLeft >= 0
  }
}

/// The decoder for a value of an archive, with its path.
struct KeyedLocation: Decoder {
  let session: KeyedSession
  let value: PropertyList
  let path: [any CodingKey]
  let depth: Int
  /// The content of a value that isn't in the file, such as a part of a shape.
  var given: KeyedContent?
  /// For an object that becomes another type: the error that is thrown if that type reads the object's values.
  private(set) var refusal: PropertyListError?
  /// Each level takes some stack frames of the type's own, about 2 KiB in a debug build.
  static let mostLevels = 128

  var codingPath: [any CodingKey] { path }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func content() throws -> KeyedContent { try given ?? session.contents.content(of: value) }

  func inner(_ key: any CodingKey, _ value: PropertyList, _ given: KeyedContent? = nil) -> KeyedLocation {
    KeyedLocation(session: session, value: value, path: path + [key], depth: depth + 1, given: given)
  }

  var isNil: Bool { get throws { if case .null = try content() { true } else { false } } }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    if let refusal { throw refusal }
    return KeyedDecodingContainer(KeyedFields(place: self, try KeyedFieldList(self)))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    if let refusal { throw refusal }
    return KeyedElements(place: self, try elements())
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

  // MARK: Objects

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    guard depth <= Self.mostLevels else {
      throw PropertyListError(.limit, "Values are nested more than \(Self.mostLevels) deep", path: text)
    }
    try spend(1)
    let content = try content()
    if let leaf = try KeyedLeaf.value(content, of: type, at: self) { return leaf }
    if case .object(let name, _) = content { return try object(name, type) }
    if case .data(let data) = content, let nested = try nested(data) { return try nested.decode(type) }
    return try T(from: self)
  }

  /// Counts values that are decoded or scanned; throws if there are too many.
  func spend(_ count: Int) throws {
    guard session.budget.take(count) else { throw PropertyListError.tooMany(at: text) }
  }

  private func object<T: Decodable>(_ name: KeyedArchive.ClassName, _ type: T.Type) throws -> T {
    guard let named = ([name.name] + name.ancestry).lazy.compactMap({ session.classes[$0] }).first else {
      throw PropertyListError.unnamed(name, at: text)
    }
    // A type that wraps the object, such as an enum of several types, decodes it as a whole. No other type may read the
    // object's values.
    guard named is T.Type else { return try T(from: whole(T.self, name)) }
    let uid = value.uid
    if let uid {
      if let made = session.made[uid] { return try cast(made, name, type) }
      guard session.open.insert(uid).inserted else {
        throw PropertyListError(
          .cycle,
          """
          The object of the class \(name.name) refers back to itself, which Codable can't build: leave out the key \
          that refers back
          """,
          path: text)
      }
    }
    defer { if let uid { session.open.remove(uid) } }
    var place = self
    place.refusal = nil
    let value = try named.init(from: place)
    if let uid, Swift.type(of: value) is AnyClass { session.made[uid] = value }
    return try cast(value, name, type)
  }

  private func cast<T>(_ value: Any, _ name: KeyedArchive.ClassName, _ type: T.Type) throws -> T {
    guard let value = value as? T else { throw wrongClass(name, type) }
    return value
  }

  private func wrongClass(_ name: KeyedArchive.ClassName, _ type: Any.Type) -> PropertyListError {
    PropertyListError(.mismatch, "Found an object of the class \(name.name) where \(type) is expected", path: text)
  }

  /// Returns the same value one level deeper, for a type that wraps it and decodes it as a whole.
  private func whole(_ type: Any.Type, _ name: KeyedArchive.ClassName) -> KeyedLocation {
    var place = KeyedLocation(session: session, value: value, path: path, depth: depth + 1, given: given)
    place.refusal = wrongClass(name, type)
    return place
  }

  /// Returns the archive inside the archive's data; nil for other data.
  private func nested(_ data: Data) throws -> KeyedLocation? {
    func place(_ inner: KeyedSession.Inner) -> KeyedLocation {
      KeyedLocation(session: inner.session, value: inner.value, path: path, depth: depth + 1)
    }
    if let uid = value.uid, let known = session.inner[uid] { return place(known) }
    guard session.budget.take(bytes: data.count) else { throw PropertyListError.tooMany(at: text) }
    guard let (archive, root) = try KeyedArchive.nested(in: data, session.limits) else { return nil }
    let inner = KeyedSession.Inner(session: archive.map { KeyedSession($0, within: session) } ?? session, value: root)
    if let uid = value.uid { session.inner[uid] = inner }
    return place(inner)
  }

  // MARK: Lists

  private func elements() throws -> [(PropertyList, KeyedContent?)] {
    let content = try content()
    try spend(content.count / KeyedBudget.lookedThrough)
    switch content {
    case .list(let elements), .set(let elements): return elements.map { ($0, nil) }
    // As Swift encodes dictionaries whose keys aren't texts: key, value, key, value.
    case .pairs(let keys, let values): return zip(keys, values).flatMap { [($0, nil), ($1, nil)] }
    case .shape(let parts): return parts.map { (.null, $0.value) }
    case .forms(let forms):
      if let elements = forms.elements { return elements.map { (.null, $0) } }
      if !forms.parts.isEmpty { return forms.parts.map { (.null, $0.value) } }
    case .string(let text):
      if case .shape(let parts) = KeyedShape.content(text) { return parts.map { (.null, $0.value) } }
    case .null:
      throw DecodingError.valueNotFound([Any].self, .init(codingPath: path, debugDescription: "found nil instead"))
    default: break
    }
    throw misfit([Any].self)
  }

  func misfit(_ type: Any.Type) -> DecodingError {
    // This error is thrown because of the content, so the content can be read.
    let found = (try? content())?.summary ?? "something else"
    return .typeMismatch(type, .init(codingPath: path, debugDescription: "expected \(type), found \(found)"))
  }

  var text: String { PathText.text(path.map { key in key.intValue.map { .index($0) } ?? .key(key.stringValue) }) }
}

extension KeyedLocation: SingleValueDecodingContainer {
  // This method can't throw. If the content can't be read, decoding the value reports the error.
  func decodeNil() -> Bool { (try? isNil) ?? false }
}

extension KeyedArchive {
  /// Returns the archive in some data, with its value at the top; only the value, for a property list that isn't an
  /// archive; nil for other data.
  static func nested(in data: Data, _ limits: PropertyListLimits) throws -> (
    archive: KeyedArchive?, value: PropertyList
  )? {
    guard data.starts(with: BinaryFormat.family) || data.starts(with: Data("<?xml".utf8)) else { return nil }
    let list = try PropertyList(data, limits: limits)
    guard list["$objects"] != nil else { return (nil, list) }
    let archive = try KeyedArchive(list)
    return (archive.top.last { $0.key == root } ?? archive.top.first).map { (archive, $0.value) }
  }
}

extension PropertyListError {
  static func tooMany(at path: String) -> PropertyListError {
    PropertyListError(
      .limit,
      """
      Decoding would create far more values than the archive contains, because its objects refer to the same ones \
      again and again
      """,
      path: path)
  }

  /// Returns the error for an object of a class that the caller didn't name.
  static func unnamed(_ name: KeyedArchive.ClassName, at path: String) -> PropertyListError {
    let ancestry = name.ancestry.filter { $0 != "NSObject" && $0 != name.name }
    let above = ancestry.isEmpty ? "" : ", a subclass of \(ancestry.joined(separator: ", "))"
    return PropertyListError(
      .unknownClass,
      "The archive has an object of the class \(name.name)\(above): specify in `classes` which type it becomes",
      path: path)
  }

  init(_ error: DecodingError) {
    func text(_ path: [any CodingKey]) -> String {
      PathText.text(path.map { key in key.intValue.map { .index($0) } ?? .key(key.stringValue) })
    }
    switch error {
    case .keyNotFound(let key, let context):
      self.init(.missingValue, "There is no value under \"\(key.stringValue)\"", path: text(context.codingPath + [key]))
    case .valueNotFound(let type, let context):
      self.init(.missingValue, "Found nil where \(type) is expected", path: text(context.codingPath))
    case .typeMismatch(_, let context), .dataCorrupted(let context):
      self.init(.mismatch, context.debugDescription, path: text(context.codingPath))
    @unknown default: self.init(.mismatch, "\(error)")
    }
  }
}
