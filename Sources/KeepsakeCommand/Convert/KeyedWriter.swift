#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInterchange

/// Puts a graph into a keyed archive that Foundation's `NSKeyedUnarchiver` reads: objects keep their classes' names and are written once, structs
/// and dictionaries are NSDictionary, cases without payload their names.
struct KeyedWriter {
  private let graph: ObjectGraph
  private var objects: [PropertyList] = [.string("$null")]
  private var classes: [String: UInt64] = [:]
  /// By their bytes: two spellings of a letter are two texts.
  private var texts: [[UInt8]: UInt64] = [:]
  /// By number: where an object of the graph stands.
  private var places: [Int: UInt64] = [:]
  private var waiting: [Int] = []
  private var nothing: UInt64?
  private var depth = 0

  /// Of an object that is a collection to which several references lead: the one field that it has.
  private static let collectionKey = "NS.objects"
  private static let version: Int128 = 100_000

  static func list(_ graph: ObjectGraph) throws -> PropertyList {
    var writer = KeyedWriter(graph: graph)
    let top = graph.top.isEmpty ? [ArchiveValue.Field(key: "root", value: graph.root)] : graph.top
    var entries: [PropertyList.Entry] = []
    for field in top { entries.append(.init(field.key, .uid(try writer.reference(field.value, isElement: false)))) }
    // Objects one after the other, so that a long chain of them takes no stack.
    var next = 0
    while next < writer.waiting.count {
      try writer.fill(writer.waiting[next])
      next += 1
    }
    return [
      "$version": .integer(version), "$archiver": "NSKeyedArchiver", "$top": .dictionary(entries), "$objects": .array(writer.objects),
    ]
  }

  private init(graph: ObjectGraph) { self.graph = graph }

  /// The collection that an object of a keyed archive's tree is; nil for any other object.
  static func collection(_ fields: [ArchiveValue.Field]) -> ArchiveValue? {
    guard fields.count == 1, let field = fields.first, field.key == collectionKey else { return nil }
    switch field.value {
    case .array, .set, .dictionary, .structure(ObjectGraph.plain, _): return field.value
    default: return nil
    }
  }

  private mutating func fill(_ number: Int) throws {
    guard let place = places[number], let object = graph.objects[number] else { return }
    let type = graph.classes[object.type]
    if let collection = Self.collection(object.fields) {
      let above = Array(type.ancestry.dropFirst().filter { $0 != "NSObject" })
      objects[Int(place)] = body(type.name, above, try collectionEntries(collection))
    } else {
      objects[Int(place)] = try instance(type, object.fields)
    }
  }

  private mutating func instance(_ type: ObjectGraph.Class, _ fields: [ArchiveValue.Field]) throws -> PropertyList {
    let entries = try fields.map { PropertyList.Entry(Self.key($0.key), try field($0.value)) }
    return body(type.name, Array(type.ancestry.dropFirst().filter { $0 != "NSObject" }), entries)
  }

  /// An archiver's own keys begin with a $; those of an object get another one in front. What was saved without a key has a number for one, such as $0.
  private static func key(_ key: String) -> String {
    guard key.hasPrefix("$") else { return key }
    let isNumber = key.utf8.count > 1 && key.utf8.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
    return isNumber ? key : "$" + key
  }

  /// Numbers and flags stand in the object itself.
  private mutating func field(_ value: ArchiveValue) throws -> PropertyList {
    if let scalar = Self.scalar(value) { return scalar }
    return .uid(try reference(value, isElement: false))
  }

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

  /// The number of the object that stands for a value.
  private mutating func reference(_ value: ArchiveValue, isElement: Bool) throws -> UInt64 {
    depth += 1
    defer { depth -= 1 }
    guard depth <= PlainForm.maximumDepth else {
      throw CommandFailure(.data, "values are nested more than \(PlainForm.maximumDepth) deep")
    }
    switch value {
    case .none: return isElement ? null() : 0
    case .string(let text): return self.text(text)
    case .reference(let number):
      guard graph.objects.indices.contains(number), graph.objects[number] != nil else { return isElement ? null() : 0 }
      if let known = places[number] { return known }
      waiting.append(number)
      let place = append(.null)
      places[number] = place
      return place
    default:
      let place = append(.null)
      objects[Int(place)] = try object(value)
      return place
    }
  }

  private mutating func object(_ value: ArchiveValue) throws -> PropertyList {
    if let scalar = Self.scalar(value) { return scalar }
    if let uid = graph.uid(value) { return .integer(Int128(uid)) }
    if let (_, inner, _) = ArchiveMark.unmarked(value) { return try object(inner) }
    switch value {
    case .data(let data): return body("NSMutableData", ["NSData"], [.init("NS.data", .data(data))])
    case .date(let date): return body("NSDate", [], [.init("NS.time", .number(date.timeIntervalSinceReferenceDate))])
    case .uuid(let uuid): return body("NSUUID", [], [.init("NS.uuidbytes", .data(withUnsafeBytes(of: uuid.uuid) { Data($0) }))])
    case .url(let text): return body("NSURL", [], [.init("NS.base", .uid(0)), .init("NS.relative", .uid(self.text(text)))])
    case .decimal(let digits): return try decimal(digits)
    case .array, .vector, .set, .dictionary: return body(Self.name(of: value), [], try collectionEntries(value))
    case .structure(let type, let fields):
      // A keyed archive's own objects may stand where they are; the structs of others have no class.
      let named = graph.uidType == nil ? "" : graph.classes[type].name
      return named.isEmpty ? try object(Self.dictionary(fields)) : try instance(graph.classes[type], fields)
    case .enumeration(_, let name, let fields):
      if fields.isEmpty { return .string(name) }
      return try object(Self.dictionary([.init(key: PlainForm.caseKey, value: .string(name))] + fields))
    case .none, .string, .bool, .integer, .unsigned, .number, .reference: return .null
    }
  }

  private static func dictionary(_ fields: [ArchiveValue.Field]) -> ArchiveValue {
    .dictionary(fields.map { .init(key: .string($0.key), value: $0.value) })
  }

  private static func name(of value: ArchiveValue) -> String {
    switch value {
    case .set: "NSSet"
    case .dictionary: "NSDictionary"
    default: "NSArray"
    }
  }

  private mutating func collectionEntries(_ value: ArchiveValue) throws -> [PropertyList.Entry] {
    switch value {
    case .array(let values), .set(let values), .vector(let values): return [.init(Self.collectionKey, try references(values))]
    case .dictionary(let pairs):
      return [.init("NS.keys", try references(pairs.map(\.key))), .init(Self.collectionKey, try references(pairs.map(\.value)))]
    case .structure(_, let fields): return try collectionEntries(Self.dictionary(fields))
    default: return []
    }
  }

  private mutating func references(_ values: [ArchiveValue]) throws -> PropertyList {
    .array(try values.map { .uid(try reference($0, isElement: true)) })
  }

  // MARK: Objects

  private mutating func append(_ object: PropertyList) -> UInt64 {
    objects.append(object)
    return UInt64(objects.count - 1)
  }

  private mutating func text(_ text: String) -> UInt64 {
    // What stands for nil takes the long way.
    guard text != "$null" else { return append(body("NSString", [], [.init("NS.string", .string(text))])) }
    let bytes = Array(text.utf8)
    if let known = texts[bytes] { return known }
    let place = append(.string(text))
    texts[bytes] = place
    return place
  }

  private mutating func null() -> UInt64 {
    if let nothing { return nothing }
    let place = append(body("NSNull", [], []))
    nothing = place
    return place
  }

  private mutating func body(_ name: String, _ above: [String], _ entries: [PropertyList.Entry]) -> PropertyList {
    let key = ([name] + above).joined(separator: "\u{0}")
    let place: UInt64
    if let known = classes[key] {
      place = known
    } else {
      place = append(["$classname": .string(name), "$classes": .array(([name] + above + ["NSObject"]).map { .string($0) })])
      classes[key] = place
    }
    return .dictionary(entries + [.init("$class", .uid(place))])
  }

  /// Up to eight 16-bit digits, the lowest first and each in little-endian order.
  private mutating func decimal(_ text: String) throws -> PropertyList {
    guard let value = text == "NaN" ? Decimal.nan : Decimal(string: text), value.isNaN || UInt128("\(value.significand.magnitude)") != nil
    else {
      throw CommandFailure(.data, "the number \(text.prefix(80)) has more digits than an NSDecimalNumber")
    }
    var left = value.isNaN ? 0 : UInt128("\(value.significand.magnitude)") ?? 0
    var mantissa = Data()
    var length: Int128 = 0
    for _ in 0..<8 {
      let digit = UInt16(truncatingIfNeeded: left)
      if left > 0 { length += 1 }
      mantissa += [UInt8(digit & 0xFF), UInt8(digit >> 8)]
      left >>= 16
    }
    // Not-a-number has a sign and no digits.
    return body(
      "NSDecimalNumber", ["NSNumber", "NSValue"],
      [
        .init("NS.exponent", .integer(Int128(value.isNaN ? 0 : value.exponent))), .init("NS.length", .integer(length)),
        .init("NS.negative", .bool(value.isNaN || value.isSignMinus)), .init("NS.compact", false), .init("NS.mantissa.bo", 1),
        .init("NS.mantissa", .data(mantissa)),
      ])
  }
}
#endif
