import KeepsakeArchive

/// Builds the tree with a list of objects to be read. Recursive only for collections with a single reference to them,
/// up to a small depth.
struct KeyedTreeBuilder {
  let archive: KeyedArchive
  private let contents: KeyedContents
  private let limits: PropertyListLimits
  private let isExact: Bool
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

  init(_ archive: KeyedArchive, _ limits: PropertyListLimits, isExact: Bool) {
    self.archive = archive
    self.isExact = isExact
    contents = KeyedContents(archive)
    self.limits = limits
    references = Array(repeating: 0, count: archive.objects.count)
  }

  mutating func build() throws -> KeyedTree {
    for object in archive.objects { count(object) }
    for entry in archive.top { count(entry.value) }
    for entry in archive.top { tree.top[entry.key] = try element(entry.value, 0, isTop: true) }
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

  /// Returns the value of an object's field, where numbers and flags are usually stored in place.
  private mutating func field(_ given: PropertyList, _ depth: Int) throws -> ArchiveValue {
    let value = try value(given, depth)
    guard isExact else { return value }
    switch (given, value) {
    case (.uid(let uid), .bool), (.uid(let uid), .integer), (.uid(let uid), .unsigned), (.uid(let uid), .number):
      return uid == 0 ? value : ArchiveMark.marked(.boxed, isFloat(given) ? ArchiveMark.marked(.float, value) : value)
    case (.uid, .data): return isPlainData(given) ? ArchiveMark.marked(.boxed, value) : value
    case (.float, _): return ArchiveMark.marked(.float, value)
    case (.string, _), (.data, _), (.date, _), (.array, _), (.set, _): return ArchiveMark.marked(.inPlace, value)
    case (.dictionary, .structure): return value
    case (.dictionary, _): return ArchiveMark.marked(.inPlace, value)
    default: return value
    }
  }

  /// Returns the value of an element, or of a key at the top, where everything is usually an object.
  private mutating func element(_ given: PropertyList, _ depth: Int, isTop: Bool = false) throws -> ArchiveValue {
    let value = try value(given, depth, isElement: !isTop)
    guard isExact else { return value }
    if given.uid != nil, isPlainData(given) { return ArchiveMark.marked(.boxed, value) }
    let number = isFloat(given) ? ArchiveMark.marked(.float, value) : value
    return given.uid == nil ? ArchiveMark.marked(.inPlace, number) : number
  }

  private func resolved(_ given: PropertyList) -> PropertyList {
    guard let uid = given.uid, uid != 0, uid < UInt64(archive.objects.count) else { return given }
    return archive.objects[Int(uid)]
  }

  private func isFloat(_ given: PropertyList) -> Bool { if case .float = resolved(given) { true } else { false } }

  private func isSharedData(_ uid: UInt64, _ content: KeyedContent) -> Bool {
    guard case .data = content, case .dictionary = resolved(.uid(uid)) else { return false }
    return references[Int(uid)] > 1
  }

  /// Whether an object is data itself, as Foundation writes NSData, and not an NSMutableData with data in it.
  private func isPlainData(_ given: PropertyList) -> Bool { resolved(given).data != nil }

  private mutating func value(_ given: PropertyList, _ depth: Int, isElement: Bool = false) throws -> ArchiveValue {
    values += 1
    guard values <= limits.values else {
      throw PropertyListError(.limit, "The archive has more than \(limits.values) values")
    }
    // Checked before the content, which may be long and have many references.
    if let uid = given.uid, let number = numbers[uid] { return .reference(number) }
    let found = try contents.content(of: given)
    if isExact, let exact = try exactValue(given, found, depth, isElement: isElement) { return exact }
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

  /// Returns the value of an object that isn't what its class would be written as; nil for any other value.
  private mutating func exactValue(
    _ given: PropertyList, _ content: KeyedContent, _ depth: Int, isElement: Bool
  ) throws -> ArchiveValue? {
    if case .null = content, isElement { return nil }
    switch try KeyedExactness.form(of: given, content, in: archive) {
    // Data that can be changed is one object for all that refer to it.
    case .plain: return given.uid.flatMap { isSharedData($0, content) ? reference($0) : nil }
    case .collection, .object:
      if let uid = given.uid { return reference(uid) }
      guard case .dictionary(let entries) = given, let name = try archive.className(of: given) else { return nil }
      return .structure(
        type: number(of: name),
        try entries.filter { $0.key != "$class" }.map { .init(key: $0.key, value: try field($0.value, depth + 1)) })
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
      type: number(of: name), try fields.map { .init(key: $0.key, value: try field($0.value, depth + 1)) })
  }

  private mutating func read(_ uid: UInt64) throws -> KeyedTree.Object {
    let object = try archive.object(uid)
    let content = try contents.content(of: .uid(uid))
    if isExact,
      try isSharedData(uid, content) || KeyedExactness.form(of: .uid(uid), content, in: archive) == .object,
      let name = try archive.className(of: object)
    {
      let fields = (object.dictionary ?? []).filter { $0.key != "$class" }
      return .init(type: number(of: name), fields: try fields.map { .init(key: $0.key, value: try field($0.value, 0)) })
    }
    switch content.shown {
    case .object(let name, let fields):
      return .init(type: number(of: name), fields: try fields.map { .init(key: $0.key, value: try field($0.value, 0)) })
    case .fields(let fields):
      // A dictionary that isn't an object, as written for `Codable` types by Foundation's archiver.
      let name =
        try archive.className(of: object)
        ?? .init(name: "NSDictionary", ancestry: ["NSDictionary", "NSObject"], hints: [])
      return .init(type: number(of: name), fields: try fields.map { .init(key: $0.key, value: try field($0.value, 0)) })
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
    case .list(let elements): return .array(try elements.map { try element($0, depth + 1) })
    case .set(let elements): return .set(try elements.map { try element($0, depth + 1) })
    case .pairs(let keys, let elements):
      return .dictionary(
        try zip(keys, elements).map { .init(key: try element($0, depth + 1), value: try element($1, depth + 1)) })
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
      return .dictionary(try entries.map { .init(key: .string($0.key), value: try element($0.value, depth + 1)) })
    case .list, .set, .pairs: return try collection(content, depth)
    case .forms(let forms): return try leaf(forms.shown, depth)
    case .object: return .none
    }
  }
}
