public import Foundation

// `@_disfavoredOverload`: a type that is archivable, too, is decoded as that, with cycles.
extension KeyedArchive {
  /// Decodes an object into a `Codable` type of the program's.
  ///
  ///     struct GameObject: Codable {                                        // was: @interface GameObject : NSObject <NSCoding>
  ///       enum CodingKeys: String, CodingKey { case name = "_name", level = "_level", items = "_items" }
  ///       var name: String, level: Int, items: [Item]
  ///     }
  ///     let classes: [String: any Decodable.Type] = ["GameObject": GameObject.self, "Item": Item.self]
  ///     let hero = try KeyedArchive.decode(GameObject.self, from: bytes, classes: classes)
  ///
  /// The keys are those of the program that wrote, by `CodingKeys` if they shall have other names. Foundation's collections are decoded as arrays, sets and dictionaries, its
  /// points, sizes and rectangles as lists or by `x`, `width`, `origin` and so on. What was saved as a float and is declared as an `Int` fits if nothing is lost. A class of the archive
  /// may become a struct. An object to which several references lead becomes one object if its type is a class. An archive in an archive's data is decoded
  /// where the type is no `Data`.
  ///
  /// - Parameters:
  ///   - key: Of the value at the top.
  ///   - classes: What may be made, by the names of classes in the archive. Of an object the first of its class and those above it counts. No other type is ever
  ///     made of an object: one whose class isn't named is an error, unless nobody asks for it.
  ///   - keys: By class in the archive: for a coding key the one that the archive has. Also counts for the classes below. For types whose `CodingKeys` shall stay as they are.
  /// - Throws: `PropertyListError`: `unknownClass`, `missingValue` and `mismatch` with the path, `cycle` where objects lead to each other, which `Codable` can't build:
  ///   `@Archivable` types can; what the bytes are wrong about; and what the types' own initialisers throw.
  @_disfavoredOverload
  public static func decode<Value: Decodable>(
    _ type: Value.Type, from data: Data, key: String = "root", classes: [String: any Decodable.Type] = [:],
    keys: [String: [String: String]] = [:], limits: PropertyListLimits = .standard
  ) throws -> Value {
    try KeyedArchive(data, limits: limits).decode(type, key: key, classes: classes, keys: keys, limits: limits)
  }

  /// The same of an archive that was read already.
  @_disfavoredOverload
  public func decode<Value: Decodable>(
    _ type: Value.Type, key: String = "root", classes: [String: any Decodable.Type] = [:], keys: [String: [String: String]] = [:],
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

/// What the places of one decoding share.
final class KeyedSession {
  let contents: KeyedContents
  let classes: [String: any Decodable.Type]
  let names: KeyedNames
  let limits: PropertyListLimits
  let budget: KeyedBudget
  /// Objects of classes that were made, by UID.
  var made: [UInt64: Any] = [:]
  /// Objects whose initialisers are running.
  var open: Set<UInt64> = []

  /// Archives in data, by the data's UID. Each is read once, so that its objects are shared, too.
  var inner: [UInt64: Inner] = [:]

  struct Inner {
    let session: KeyedSession
    let value: PropertyList
  }

  init(_ archive: KeyedArchive, _ classes: [String: any Decodable.Type], _ names: KeyedNames, _ limits: PropertyListLimits) {
    contents = KeyedContents(archive)
    self.classes = classes
    self.names = names
    self.limits = limits
    budget = KeyedBudget(archive)
  }

  /// Of an archive in another one's data.
  init(_ archive: KeyedArchive, within outer: KeyedSession) {
    contents = KeyedContents(archive)
    classes = outer.classes
    names = outer.names
    limits = outer.limits
    budget = outer.budget
  }
}

/// How many values a decoding may still make. What several references lead to is made for each of them, if its type is no class: a few objects that name each other
/// twice would be made more often than any machine can count.
final class KeyedBudget {
  /// Of each value in the file, on the average. Honest archives have most once.
  private static let times = 16
  /// Of each byte of text or data: many objects may share a long text, which `@Archivable` types are given by way of an archive, where each has its own.
  private static let timesBytes = 128
  /// Of what is only looked through, as many count as one value.
  static let lookedThrough = 8
  /// Made besides that of any archive, however small.
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
        // It may be an archive, of a value a byte at most.
        if data.starts(with: BinaryFormat.family) || data.starts(with: Data("<?xml".utf8)) { count += data.count }
      case .array(let elements), .set(let elements): open += elements
      case .dictionary(let entries): open += entries.map(\.value)
      default: break
      }
    }
    left += count * Self.times
    bytesLeft += bytes * Self.timesBytes
  }

  /// So many values are made; false if there were too many.
  func take(_ count: Int) -> Bool {
    left -= count
    return left >= 0
  }

  func take(bytes: Int) -> Bool {
    bytesLeft -= bytes
    return bytesLeft >= 0
  }
}

/// A place in an archive that is decoded.
struct KeyedLocation: Decoder {
  let session: KeyedSession
  let value: PropertyList
  let path: [any CodingKey]
  let depth: Int
  /// Set where the value was made up, of a shape's parts.
  var given: KeyedContent?
  /// Of an object that becomes another type: what is thrown where somebody looks into it.
  private(set) var refusal: PropertyListError?
  /// Each level takes some stack frames of the type's own, in a debug build about 2 KiB.
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

  /// So many values are made, or looked through.
  func spend(_ count: Int) throws {
    guard session.budget.take(count) else { throw PropertyListError.tooMany(at: text) }
  }

  private func object<T: Decodable>(_ name: KeyedArchive.ClassName, _ type: T.Type) throws -> T {
    guard let named = ([name.name] + name.ancestry).lazy.compactMap({ session.classes[$0] }).first else {
      throw PropertyListError.unnamed(name, at: text)
    }
    // What wraps an object, as an enum of several types does, asks for the whole of it; no other type is made of its values.
    guard named is T.Type else { return try T(from: whole(T.self, name)) }
    let uid = value.uid
    if let uid {
      if let made = session.made[uid] { return try cast(made, name, type) }
      guard session.open.insert(uid).inserted else {
        throw PropertyListError(
          .cycle, "The object of the class \(name.name) leads back to itself, which Codable can't build: leave the key out", path: text)
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
    PropertyListError(.mismatch, "There is an object of the class \(name.name) where \(type) is expected", path: text)
  }

  /// The same place a level deeper, for a type that decodes itself from a value as a whole.
  private func whole(_ type: Any.Type, _ name: KeyedArchive.ClassName) -> KeyedLocation {
    var place = KeyedLocation(session: session, value: value, path: path, depth: depth + 1, given: given)
    place.refusal = wrongClass(name, type)
    return place
  }

  /// An archive inside of the archive; nil for other data.
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
    // As Swift's dictionaries are coded whose keys are no texts: key, value, key, value.
    case .pairs(let keys, let values): return zip(keys, values).flatMap { [($0, nil), ($1, nil)] }
    case .shape, .range, .color: return (content.parts ?? []).map { (.null, $0.value) }
    case .indexes(let ranges): return ranges.map { (.null, .range(location: Int128($0.location), length: Int128($0.length))) }
    case .string(let text):
      if case .shape(let parts) = KeyedShape.content(text) { return parts.map { (.null, $0.value) } }
    case .null: throw DecodingError.valueNotFound([Any].self, .init(codingPath: path, debugDescription: "there is nil instead"))
    default: break
    }
    throw misfit([Any].self)
  }

  func misfit(_ type: Any.Type) -> DecodingError {
    // The error that leads here was thrown because of the content, so that it can be had.
    let found = (try? content())?.summary ?? "something else"
    return .typeMismatch(type, .init(codingPath: path, debugDescription: "expected \(type), found \(found)"))
  }

  var text: String { PathText.text(path.map { key in key.intValue.map { .index($0) } ?? .key(key.stringValue) }) }
}

extension KeyedLocation: SingleValueDecodingContainer {
  // Nothing that is read later would show a failure here.
  func decodeNil() -> Bool { (try? isNil) ?? false }
}

extension KeyedArchive {
  /// The archive in some data, with its value at the top; only the value of a property list that is no archive; nil for other data.
  static func nested(in data: Data, _ limits: PropertyListLimits) throws -> (archive: KeyedArchive?, value: PropertyList)? {
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
      .limit, "Far more values would be made than the archive has: objects name the same ones again and again", path: path)
  }

  /// For an object of a class that the caller didn't name.
  static func unnamed(_ name: KeyedArchive.ClassName, at path: String) -> PropertyListError {
    let ancestry = name.ancestry.filter { $0 != "NSObject" && $0 != name.name }
    let above = ancestry.isEmpty ? "" : ", below \(ancestry.joined(separator: ", "))"
    return PropertyListError(
      .unknownClass, "There is an object of the class \(name.name)\(above): say in `classes` which type it becomes", path: path)
  }

  init(_ error: DecodingError) {
    func text(_ path: [any CodingKey]) -> String {
      PathText.text(path.map { key in key.intValue.map { .index($0) } ?? .key(key.stringValue) })
    }
    switch error {
    case .keyNotFound(let key, let context):
      self.init(.missingValue, "There is no value under \"\(key.stringValue)\"", path: text(context.codingPath + [key]))
    case .valueNotFound(let type, let context):
      self.init(.missingValue, "There is nil where \(type) is expected", path: text(context.codingPath))
    case .typeMismatch(_, let context), .dataCorrupted(let context):
      self.init(.mismatch, context.debugDescription, path: text(context.codingPath))
    @unknown default: self.init(.mismatch, "\(error)")
    }
  }
}
