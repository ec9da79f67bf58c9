#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInterchange

/// Writes a graph as a keyed archive that Foundation's `NSKeyedUnarchiver` reads: objects keep the names of their
/// classes and are written once, structs and dictionaries become NSDictionary, cases without payload become their
/// names.
struct KeyedWriter {
  private let graph: ObjectGraph
  /// Whether every object is written with the class and the fields that it has in the graph, whatever Foundation reads,
  /// and also if nothing refers to it: to compare what is written with.
  private let isLiteral: Bool
  private var table = KeyedObjectTable()
  /// The UIDs of the graph's objects, by their numbers in the graph.
  private var places: [Int: UInt64] = [:]
  private var waiting: [Int] = []
  private var nothing: UInt64?
  /// Data that isn't in an object of a class. As it can't be changed, equal data is written once.
  private var plainData: [Data: UInt64] = [:]
  private var depth = 0

  static func list(_ graph: ObjectGraph, isLiteral: Bool = false) throws -> PropertyList {
    var writer = KeyedWriter(graph, isLiteral: isLiteral)
    let top = graph.top.isEmpty ? [ArchiveValue.Field(key: "root", value: graph.root)] : graph.top
    var entries: [PropertyList.Entry] = []
    for field in top { entries.append(.init(field.key, try writer.element(field.value, isElement: false))) }
    if isLiteral {
      for number in graph.objects.indices { _ = try writer.reference(.reference(number), isElement: false) }
    }
    // One object after the other, so that a long chain of them doesn't use the stack.
    var next = 0
    while next < writer.waiting.count {
      try writer.fill(writer.waiting[next])
      next += 1
    }
    return writer.table.list(top: entries)
  }

  private init(_ graph: ObjectGraph, isLiteral: Bool) { (self.graph, self.isLiteral) = (graph, isLiteral) }

  /// Returns the collection that an object of a keyed archive's tree represents; nil for any other object.
  static func collection(_ fields: [ArchiveValue.Field]) -> ArchiveValue? {
    guard fields.count == 1, let field = fields.first, field.key == KeyedTree.collectionKey else { return nil }
    switch field.value {
    case .array, .set, .dictionary, .structure(ObjectGraph.plain, _): return field.value
    default: return nil
    }
  }

  private mutating func fill(_ number: Int) throws {
    guard let place = places[number], let object = graph.objects[number] else { return }
    let type = graph.classes[object.type]
    if let collection = Self.collection(object.fields), let content = try content(of: collection),
      let body = table.object(for: content, as: (type.name, Self.superclasses(type)), isLiteral: isLiteral)
    {
      table.fill(place, body)
    } else if !isLiteral, !KeyedObjectTable.mayHave(object.fields.map(\.key), in: type.name) {
      table.fill(place, try self.object(Self.dictionary(object.fields)))
    } else {
      table.fill(place, try instance(type, object.fields))
    }
  }

  private mutating func instance(_ type: ObjectGraph.Class, _ fields: [ArchiveValue.Field]) throws -> PropertyList {
    let entries = try fields.map { PropertyList.Entry(Self.key($0.key), try field($0.value)) }
    return table.object(type.name, Self.superclasses(type), entries)
  }

  private static func superclasses(_ type: ObjectGraph.Class) -> [String] {
    Array(type.ancestry.dropFirst().filter { $0 != "NSObject" })
  }

  /// Numbers stay as they are: $0 is the archiver's own key of a value that was saved without one.
  private static func key(_ key: String) -> String {
    KeyedObjectTable.isNumbered(key) ? key : KeyedObjectTable.key(key)
  }

  /// Numbers and flags are stored in the object itself.
  private mutating func field(_ value: ArchiveValue) throws -> PropertyList {
    if let scalar = Self.scalar(value) { return scalar }
    return try element(value, isElement: false)
  }

  /// Returns what refers to an object, or the value itself if it is marked as stored in place.
  private mutating func element(_ value: ArchiveValue, isElement: Bool = true) throws -> PropertyList {
    guard let (mark, inner, _) = ArchiveMark.unmarked(value), mark == .inPlace else {
      return .uid(try reference(value, isElement: isElement))
    }
    return try inPlace(inner)
  }

  private mutating func inPlace(_ value: ArchiveValue) throws -> PropertyList {
    depth += 1
    defer { depth -= 1 }
    guard depth <= PlainForm.maximumDepth else { throw Self.tooDeep }
    if let scalar = Self.scalar(value) { return scalar }
    switch value {
    case .none: return .null
    case .string(let text): return .string(text)
    case .data(let data): return .data(data)
    case .date(let date): return .date(date)
    case .array(let values): return .array(try values.map { try element($0) })
    case .set(let values): return .set(try values.map { try element($0) })
    case .structure(ObjectGraph.plain, let fields):
      return .dictionary(try fields.map { .init(Self.key($0.key), try element($0.value)) })
    default: return try object(value)
    }
  }

  private static let tooDeep = CommandFailure(
    .data, "values are nested more than \(PlainForm.maximumDepth) levels deep")

  private static func scalar(_ value: ArchiveValue) -> PropertyList? {
    if let (mark, inner, _) = ArchiveMark.unmarked(value), mark == .float, case .number(let number) = inner {
      return .float(Float(number))
    }
    return switch value {
    case .bool(let value): .bool(value)
    case .integer(let value): .integer(Int128(value))
    case .unsigned(let value): .integer(Int128(value))
    case .number(let value): .number(value)
    default: nil
    }
  }

  /// Returns the UID of the object that represents a value.
  private mutating func reference(_ value: ArchiveValue, isElement: Bool) throws -> UInt64 {
    depth += 1
    defer { depth -= 1 }
    guard depth <= PlainForm.maximumDepth else { throw Self.tooDeep }
    switch value {
    case .none: return isElement ? null() : 0
    case .string(let text): return table.text(text)
    case .reference(let number):
      guard graph.objects.indices.contains(number), graph.objects[number] != nil else { return isElement ? null() : 0 }
      if let known = places[number] { return known }
      waiting.append(number)
      let place = table.reserve()
      places[number] = place
      return place
    default:
      if let (mark, inner, _) = ArchiveMark.unmarked(value), mark == .boxed, case .data(let data) = inner {
        return plain(data)
      }
      let place = table.reserve()
      table.fill(place, try object(value))
      return place
    }
  }

  private mutating func plain(_ data: Data) -> UInt64 {
    if let known = plainData[data] { return known }
    let place = table.reserve()
    plainData[data] = place
    table.fill(place, .data(data))
    return place
  }

  private mutating func object(_ value: ArchiveValue) throws -> PropertyList {
    if let scalar = Self.scalar(value) { return scalar }
    if let uid = graph.uid(value) { return .integer(Int128(uid)) }
    if let (_, inner, _) = ArchiveMark.unmarked(value) { return try object(inner) }
    if let content = try content(of: value), let object = table.object(for: content) { return object }
    switch value {
    case .structure(let type, let fields):
      // A keyed archive's own objects may be written in place; the structs of other formats have no class.
      let named = graph.uidType == nil ? "" : graph.classes[type].name
      return named.isEmpty ? try object(Self.dictionary(fields)) : try instance(graph.classes[type], fields)
    case .enumeration(_, let name, let fields):
      if fields.isEmpty { return .string(name) }
      return try object(Self.dictionary([.init(key: PlainForm.caseKey, value: .string(name))] + fields))
    case .decimal(let digits):
      throw CommandFailure(.data, "the number \(digits.prefix(80)) has more digits than an NSDecimalNumber can have")
    default: return .null
    }
  }

  private static func dictionary(_ fields: [ArchiveValue.Field]) -> ArchiveValue {
    .dictionary(fields.map { .init(key: .string($0.key), value: $0.value) })
  }

  /// Returns the content of a value that Foundation has a class for; nil for any other value.
  private mutating func content(of value: ArchiveValue) throws -> KeyedContent? {
    switch value {
    case .data(let data): .data(data)
    case .date(let date): .date(date)
    case .uuid(let uuid): .uuid(uuid)
    case .url(let text): .url(text)
    case .decimal(let digits): .decimal(digits)
    case .array(let values), .vector(let values): .list(try references(values))
    case .set(let values): .set(try references(values))
    case .dictionary(let pairs):
      .pairs(keys: try references(pairs.map(\.key)), values: try references(pairs.map(\.value)))
    case .structure(ObjectGraph.plain, let fields) where graph.uidType != nil: try content(of: Self.dictionary(fields))
    default: nil
    }
  }

  private mutating func references(_ values: [ArchiveValue]) throws -> [PropertyList] {
    try values.map { try element($0) }
  }

  private mutating func null() -> UInt64 {
    if let nothing { return nothing }
    let place = table.reserve()
    table.fill(place, table.object(for: .null) ?? .null)
    nothing = place
    return place
  }
}
#endif
