public import Foundation

extension KeyedArchive {
  /// Decodes an object into a type of the program's.
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
  /// - Throws: `PropertyListError`: `unknownClass`, `missingValue` and `mismatch` with the path, `cycle` where objects lead to each other, which `Codable` can't build;
  ///   what the bytes are wrong about; and what the types' own initialisers throw.
  public static func decode<Value: Decodable>(
    _ type: Value.Type, from data: Data, key: String = "root", classes: [String: any Decodable.Type] = [:],
    limits: PropertyListLimits = .standard
  ) throws -> Value {
    try KeyedArchive(data, limits: limits).decode(type, key: key, classes: classes, limits: limits)
  }

  /// The same of an archive that was read already.
  public func decode<Value: Decodable>(
    _ type: Value.Type, key: String = "root", classes: [String: any Decodable.Type] = [:], limits: PropertyListLimits = .standard
  ) throws -> Value {
    guard let value = top.last(where: { $0.key == key })?.value else {
      let keys = top.prefix(20).map(\.key).joined(separator: ", ")
      throw PropertyListError(.missingValue, "There is nothing under \"\(key)\" at the top of the archive, which has: \(keys)")
    }
    let session = KeyedSession(self, classes, limits)
    do {
      return try KeyedPlace(session: session, value: value, path: [], depth: 0).decode(type)
    } catch let error as DecodingError {
      throw PropertyListError(error)
    }
  }
}

/// What the places of one decoding share.
final class KeyedSession {
  let contents: KeyedContents
  let classes: [String: any Decodable.Type]
  let limits: PropertyListLimits
  let budget: KeyedBudget
  /// Objects of classes that were made, by UID.
  var made: [UInt64: Any] = [:]
  /// Objects whose initialisers are running.
  var open: Set<UInt64> = []

  /// - Parameter outer: Of the archive that this one stands in.
  init(
    _ archive: KeyedArchive, _ classes: [String: any Decodable.Type], _ limits: PropertyListLimits, within outer: KeyedBudget? = nil
  ) {
    contents = KeyedContents(archive)
    self.classes = classes
    self.limits = limits
    budget = outer ?? KeyedBudget()
    budget.add(archive)
  }
}

/// How many values a decoding may still make. What several references lead to is made for each of them, if its type is no class: a few objects that name each other
/// twice would be made more often than any machine can count.
final class KeyedBudget {
  /// Of each value in the file, on the average. Honest archives have most once.
  private static let times = 16
  /// Made besides that of any archive, however small.
  private var left = 100_000

  func add(_ archive: KeyedArchive) {
    var count = 0
    var open = archive.objects + archive.top.map(\.value)
    while let value = open.popLast() {
      count += 1
      switch value {
      case .array(let elements), .set(let elements): open += elements
      case .dictionary(let entries): open += entries.map(\.value)
      default: break
      }
    }
    left += count * Self.times
  }

  /// One more value is made; false if there were too many.
  func take() -> Bool {
    left -= 1
    return left >= 0
  }
}

/// A place in an archive that is decoded.
struct KeyedPlace: Decoder {
  let session: KeyedSession
  let value: PropertyList
  let path: [any CodingKey]
  let depth: Int
  /// Set where the value was made up, of a shape's parts.
  var given: KeyedContent?
  /// Each level takes some stack frames of the type's own, in a debug build about 2 KiB.
  static let mostLevels = 128

  var codingPath: [any CodingKey] { path }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func content() throws -> KeyedContent { try given ?? session.contents.content(of: value) }

  func inner(_ key: any CodingKey, _ value: PropertyList, _ given: KeyedContent? = nil) -> KeyedPlace {
    KeyedPlace(session: session, value: value, path: path + [key], depth: depth + 1, given: given)
  }

  var isNil: Bool { get throws { if case .null = try content() { true } else { false } } }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(KeyedFields(place: self, try KeyedFieldList(self)))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { KeyedElements(place: self, try elements()) }
  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

  // MARK: Objects

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    guard depth <= Self.mostLevels else {
      throw PropertyListError(.limit, "Values are nested more than \(Self.mostLevels) deep", path: text)
    }
    guard session.budget.take() else {
      throw PropertyListError(
        .limit, "Far more values would be made than the archive has: objects name the same ones again and again", path: text)
    }
    let content = try content()
    if let leaf = try KeyedLeaf.value(content, of: type, at: self) { return leaf }
    if case .object(let name, _) = content { return try object(name, type) }
    if case .data(let data) = content, let nested = try nested(data) { return try nested.decode(type) }
    return try T(from: self)
  }

  private func object<T: Decodable>(_ name: KeyedArchive.ClassName, _ type: T.Type) throws -> T {
    guard let named = ([name.name] + name.ancestry).lazy.compactMap({ session.classes[$0] }).first else {
      let ancestry = name.ancestry.dropFirst().filter { $0 != "NSObject" }
      let above = ancestry.isEmpty ? "" : ", below \(ancestry.joined(separator: ", "))"
      throw PropertyListError(
        .unknownClass, "There is an object of the class \(name.name)\(above): say in `classes` which type it becomes", path: text)
    }
    let uid = value.uid
    if let uid {
      if let made = session.made[uid] { return try cast(made, name, type) }
      guard session.open.insert(uid).inserted else {
        throw PropertyListError(
          .cycle, "The object of the class \(name.name) leads back to itself, which Codable can't build: leave the key out", path: text)
      }
    }
    defer { if let uid { session.open.remove(uid) } }
    let value = try named.init(from: self)
    if let uid, Swift.type(of: value) is AnyClass { session.made[uid] = value }
    return try cast(value, name, type)
  }

  private func cast<T>(_ value: Any, _ name: KeyedArchive.ClassName, _ type: T.Type) throws -> T {
    guard let value = value as? T else {
      throw PropertyListError(.mismatch, "There is an object of the class \(name.name) where \(type) is expected", path: text)
    }
    return value
  }

  /// An archive inside of the archive; nil for other data.
  private func nested(_ data: Data) throws -> KeyedPlace? {
    guard data.starts(with: BinaryFormat.family) || data.starts(with: Data("<?xml".utf8)) else { return nil }
    let list = try PropertyList(data, limits: session.limits)
    guard list["$objects"] != nil else { return KeyedPlace(session: session, value: list, path: path, depth: depth + 1) }
    let archive = try KeyedArchive(list)
    guard let value = archive.top.last(where: { $0.key == KeyedArchive.root })?.value ?? archive.top.first?.value else { return nil }
    let inner = KeyedSession(archive, session.classes, session.limits, within: session.budget)
    return KeyedPlace(session: inner, value: value, path: path, depth: depth + 1)
  }

  // MARK: Lists

  private func elements() throws -> [(PropertyList, KeyedContent?)] {
    switch try content() {
    case .list(let elements), .set(let elements): return elements.map { ($0, nil) }
    // As Swift's dictionaries are coded whose keys are no texts: key, value, key, value.
    case .pairs(let keys, let values): return zip(keys, values).flatMap { [($0, nil), ($1, nil)] }
    case .shape(let parts): return parts.map { (.null, $0.value) }
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

extension KeyedPlace: SingleValueDecodingContainer {
  // Nothing that is read later would show a failure here.
  func decodeNil() -> Bool { (try? isNil) ?? false }
}

extension PropertyListError {
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
