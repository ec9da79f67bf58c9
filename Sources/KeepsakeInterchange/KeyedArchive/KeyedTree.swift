public import KeepsakeArchive

/// A keyed archive as archive values, which can be shown and compared without the types that wrote it.
///
/// Texts, numbers, dates and collections of Foundation are values. An object of any other class is a `reference`, an
/// index into `objects`. So is a collection with several references to it, or one that contains itself; so sharing and
/// cycles are preserved.
public struct KeyedTree: Sendable, Equatable {
  /// An object with its saved values.
  public struct Object: Sendable, Equatable {
    /// An index into `classes`.
    public var type: Int
    /// The fields in the file's order. For a collection, a single field `NS.objects`.
    public var fields: [ArchiveValue.Field]
  }

  /// The key of the single field of an object that is a collection.
  package static let collectionKey = "NS.objects"

  /// Each class once. The type of a `structure` in a value is an index into this list.
  public internal(set) var classes: [KeyedArchive.ClassName] = []
  /// The objects; a reference in a value is an index into them.
  public internal(set) var objects: [Object] = []
  /// The values at the top by key.
  public internal(set) var top: [String: ArchiveValue] = [:]
}

extension KeyedArchive {
  /// Returns the whole archive as values. Takes time and memory in proportion to the file.
  ///
  /// - Parameter limits: Only its `values` is used: the maximum number of values in the tree.
  /// - Returns: The tree.
  /// - Throws: `PropertyListError` with `damaged` for references to objects that don't exist and for invalid
  ///   descriptions of classes, or with `limit`.
  public func tree(limits: PropertyListLimits = .standard) throws -> KeyedTree {
    var builder = KeyedTreeBuilder(self, limits)
    return try builder.build()
  }
}

/// Builds the tree with a list of objects to be read. Recursive only for collections with a single reference to them,
/// up to a small depth.
private struct KeyedTreeBuilder {
  private let archive: KeyedArchive
  private let contents: KeyedContents
  private let limits: PropertyListLimits
  private var tree = KeyedTree()
  private var classNumbers: [KeyedArchive.ClassName: Int] = [:]
  /// By UID: the number of references to the object.
  private var references: [Int]
  /// By UID: the object's number in the tree.
  private var numbers: [UInt64: Int] = [:]
  private var waiting: [UInt64] = []
  private var values = 0
  /// Collections nested deeper than this become objects of their own.
  private static let inlineDepth = 32

  init(_ archive: KeyedArchive, _ limits: PropertyListLimits) {
    self.archive = archive
    contents = KeyedContents(archive)
    self.limits = limits
    references = Array(repeating: 0, count: archive.objects.count)
  }

  mutating func build() throws -> KeyedTree {
    for object in archive.objects { count(object) }
    for entry in archive.top { count(entry.value) }
    for entry in archive.top { tree.top[entry.key] = try value(entry.value, 0) }
    while let uid = waiting.popLast() {
      guard let number = numbers[uid] else { continue }
      tree.objects[number] = try read(uid)
    }
    return tree
  }

  private mutating func count(_ value: PropertyList) {
    switch value {
    case .uid(let uid): if uid < UInt64(references.count) { references[Int(uid)] += 1 }
    case .array(let elements), .set(let elements): for element in elements { count(element) }
    case .dictionary(let entries): for entry in entries { count(entry.value) }
    default: break
    }
  }

  /// Counts values that occur several times in one value, such as attributes in several parts of a text, because the
  /// references in the file don't show that.
  private mutating func countRepeated(_ fields: [PropertyList.Entry]) {
    var met: Set<UInt64> = []
    var open = fields.map(\.value)
    while let value = open.popLast() {
      switch value {
      case .uid(let uid): if !met.insert(uid).inserted { count(value) }
      case .array(let elements): open += elements
      case .dictionary(let entries): open += entries.map(\.value)
      default: break
      }
    }
  }

  private mutating func value(_ given: PropertyList, _ depth: Int) throws -> ArchiveValue {
    values += 1
    guard values <= limits.values else {
      throw PropertyListError(.limit, "The archive has more than \(limits.values) values")
    }
    // Checked before the content, which may be long and have many references.
    if let uid = given.uid, let number = numbers[uid] { return .reference(number) }
    let found = try contents.content(of: given)
    if case .forms(let forms) = found { countRepeated(forms.fields ?? []) }
    let content = found.shown
    switch content {
    case .object: return try own(given, content, depth)
    case .list, .set, .pairs, .fields:
      guard let uid = given.uid, references[Int(uid)] > 1 || depth >= Self.inlineDepth else {
        return try collection(content, depth)
      }
      return reference(uid)
    default: return try leaf(content, depth)
    }
  }

  private mutating func reference(_ uid: UInt64) -> ArchiveValue {
    if let number = numbers[uid] { return .reference(number) }
    let number = tree.objects.count
    numbers[uid] = number
    tree.objects.append(.init(type: 0, fields: []))
    waiting.append(uid)
    return .reference(number)
  }

  /// Returns a reference to an object, or the object itself if it is stored in place, as some writers do with small
  /// ones.
  private mutating func own(_ given: PropertyList, _ content: KeyedContent, _ depth: Int) throws -> ArchiveValue {
    if let uid = given.uid { return reference(uid) }
    guard case .object(let name, let fields) = content else { return .none }
    return .structure(
      type: number(of: name), try fields.map { .init(key: $0.key, value: try value($0.value, depth + 1)) })
  }

  private mutating func read(_ uid: UInt64) throws -> KeyedTree.Object {
    let object = try archive.object(uid)
    switch try contents.content(of: .uid(uid)).shown {
    case .object(let name, let fields):
      return .init(type: number(of: name), fields: try fields.map { .init(key: $0.key, value: try value($0.value, 0)) })
    case .fields(let fields):
      // A dictionary that isn't an object, as written for `Codable` types by Foundation's archiver.
      let name =
        try archive.className(of: object)
        ?? .init(name: "NSDictionary", ancestry: ["NSDictionary", "NSObject"], hints: [])
      return .init(type: number(of: name), fields: try fields.map { .init(key: $0.key, value: try value($0.value, 0)) })
    case let content:
      let name =
        try archive.className(of: object) ?? .init(name: "NSArray", ancestry: ["NSArray", "NSObject"], hints: [])
      return .init(
        type: number(of: name), fields: [.init(key: KeyedTree.collectionKey, value: try collection(content, 0))])
    }
  }

  private mutating func number(of name: KeyedArchive.ClassName) -> Int {
    if let number = classNumbers[name] { return number }
    classNumbers[name] = tree.classes.count
    tree.classes.append(name)
    return tree.classes.count - 1
  }

  private mutating func collection(_ content: KeyedContent, _ depth: Int) throws -> ArchiveValue {
    switch content {
    case .list(let elements): return .array(try elements.map { try value($0, depth + 1) })
    case .set(let elements): return .set(try elements.map { try value($0, depth + 1) })
    case .pairs(let keys, let elements):
      return .dictionary(
        try zip(keys, elements).map { .init(key: try value($0, depth + 1), value: try value($1, depth + 1)) })
    default: return try leaf(content, depth)
    }
  }

  private mutating func leaf(_ content: KeyedContent, _ depth: Int) throws -> ArchiveValue {
    switch content {
    case .null: return .none
    case .bool(let value): return .bool(value)
    case .integer(let value):
      if let small = Int64(exactly: value) { return .integer(small) }
      return UInt64(exactly: value).map { .unsigned($0) } ?? .decimal("\(value)")
    case .number(let value): return .number(value)
    case .string(let value): return .string(value)
    case .data(let value): return .data(value)
    case .date(let value): return .date(value)
    case .url(let value): return .url(value)
    case .uuid(let value): return .uuid(value)
    case .decimal(let value): return .decimal(value)
    case .shape(let parts):
      return .dictionary(try parts.map { .init(key: .string($0.name), value: try leaf($0.value, depth + 1)) })
    case .fields(let entries):
      return .dictionary(try entries.map { .init(key: .string($0.key), value: try value($0.value, depth + 1)) })
    case .list, .set, .pairs: return try collection(content, depth)
    case .forms(let forms): return try leaf(forms.shown, depth)
    case .object: return .none
    }
  }
}
