#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInterchange

/// A graph as values, lists and dictionaries without types or objects, as in JSON, property lists and `Codable` types.
///
/// What the format can't hold is an error with its path or, if requested, is written in another way and counted.
struct PlainForm {
  /// Something that was given up, and how often.
  struct Loss: Codable, Equatable {
    var what: String
    var count: Int
    /// The path of the first one.
    var path: String
  }

  let graph: ObjectGraph
  let target: FileFormat
  let isLossy: Bool
  /// Whether the values come from a format that has nulls and sets, and the target has them as well.
  let keepsKinds: Bool
  private(set) var losses: [Loss] = []
  /// The path of the current value.
  private var path: [String] = []
  private var seen: Set<Int> = []
  private var open: Set<Int> = []
  private var values = 0
  private var room: SpellingRoom

  /// The deepest nesting of lists and dictionaries: what readers of JSON accept.
  static let maximumDepth = 512
  /// The most values: objects that are written out at every reference can result in any number of them.
  static let maximumValues = 4 << 20
  static let classKey = "$class"
  static let caseKey = "$case"

  init(_ graph: ObjectGraph, for target: FileFormat, isLossy: Bool, keepsKinds: Bool = false, _ room: SpellingRoom) {
    (self.graph, self.target, self.isLossy, self.keepsKinds, self.room) = (graph, target, isLossy, keepsKinds, room)
  }

  mutating func tree() throws -> ArchiveValue {
    guard let value = try value(graph.root) else {
      throw CommandFailure(
        .data, "the file contains only a null, which the format \(target.words) doesn't have",
        next: "convert it to JSON")
    }
    return value
  }

  /// Returns nil for a value that is left out. Recurses once per level.
  private mutating func value(_ value: ArchiveValue) throws -> ArchiveValue? {
    values += 1
    guard values <= Self.maximumValues else {
      throw failure(
        "written out everywhere they are referred to, the objects make more than \(Self.maximumValues) values")
    }
    guard path.count <= Self.maximumDepth else {
      throw failure(
        "values are nested more than \(Self.maximumDepth) levels deep", next: "convert it to a keyed archive")
    }
    try room.take(leaf: value)
    if let (mark, inner, _) = ArchiveMark.unmarked(value) {
      if mark == .float, case .number(let number) = inner, target == .json, !number.isFinite {
        return try self.value(inner)
      }
      return mark == .float || (mark == .decimal && target == .archive) ? value : try self.value(inner)
    }
    if graph.uid(value) != nil { return try uid(value) }
    switch value {
    case .none: return try null()
    case .bool, .integer, .unsigned, .string: return value
    case .number(let number):
      if number.isFinite || target != .json { return value }
      return try spelled("\(number)", "numbers that aren't finite, as text")
    case .decimal(let digits):
      if target == .archive || Int128(digits) != nil { return value }
      return try spelled(digits, "decimal numbers, as text")
    case .data(let data): return target == .json ? try spelled(data.base64EncodedString(), "data, as base64") : value
    case .date(let date): return try self.date(date)
    case .uuid(let uuid): return target == .archive ? value : try spelled(uuid.uuidString, "UUIDs, as text")
    case .url(let text): return target == .archive ? value : try spelled(text, "URLs, as text")
    case .reference(let number): return try object(number)
    case .vector(let values), .array(let values): return .array(try elements(values))
    case .set(let values):
      if keepsKinds { return .set(try elements(values)) }
      // As in Codable, a set is a list.
      if target != .archive { try lose("sets, as lists") }
      return .array(try elements(values))
    case .dictionary(let pairs): return try dictionary(pairs)
    case .structure(let type, let inner):
      let name = graph.uidType == nil ? "" : graph.classes[type].name
      return try name.isEmpty ? .structure(type: ObjectGraph.plain, fields(inner)) : named(name, inner)
    case .enumeration(_, let name, let inner):
      if inner.isEmpty { return .string(name) }
      return .structure(type: ObjectGraph.plain, [.init(key: Self.caseKey, value: .string(name))] + (try fields(inner)))
    }
  }

  private mutating func null() throws -> ArchiveValue? {
    if target == .json || target == .archive || keepsKinds { return ArchiveValue.none }
    try lose("nulls, left out")
    return nil
  }

  private mutating func uid(_ value: ArchiveValue) throws -> ArchiveValue? {
    if target != .json && target != .archive { return value }
    try lose("UIDs, as numbers")
    return graph.uid(value).map { ObjectGraph.integer(Int128($0)) }
  }

  private mutating func date(_ date: Date) throws -> ArchiveValue {
    let seconds = date.timeIntervalSinceReferenceDate
    let isSayable = (target == .xml ? Self.xmlSeconds : Self.sayableSeconds).contains(seconds)
    switch target {
    case .xml:
      if isSayable, seconds == seconds.rounded() { return .date(date) }
      guard isSayable else { return try spelled("\(seconds)", "dates beyond the calendar, as seconds since 2001") }
      try lose("fractions of seconds, left out")
      return .date(Date(timeIntervalSinceReferenceDate: seconds.rounded(.down)))
    case .json:
      guard let text = ValueLine.iso(date) else { return try spelled("\(seconds)", "dates, as text") }
      if (seconds * 1_000).rounded() / 1_000 != seconds { try lose("parts of milliseconds, left out") }
      return try spelled(text, "dates, as text")
    case .archive, .binary, .keyed: return .date(date)
    }
  }

  /// Dates in years with four digits: no calendar in use has others, and formatting them can fail.
  static let sayableSeconds = -62_000_000_000.0..<252_000_000_000.0

  /// The years 0 to 9999, which an XML property list can hold.
  private static let xmlSeconds = -63_145_526_400.0..<252_455_616_000.0

  private mutating func object(_ number: Int) throws -> ArchiveValue? {
    guard graph.objects.indices.contains(number), let object = graph.objects[number] else { return try null() }
    guard !open.contains(number) else {
      throw failure(
        """
        an object of the class \(graph.classes[object.type].name) leads back to itself, which \(target.words) can't \
        express
        """)
    }
    if !seen.insert(number).inserted { try lose("references to an object that is written elsewhere, as copies of it") }
    open.insert(number)
    defer { open.remove(number) }
    let name = graph.classes[object.type].name
    // A shared collection: the name of Foundation's class adds nothing to the value.
    if let collection = KeyedWriter.collection(object.fields) { return try value(collection) }
    return try named(name, object.fields)
  }

  private mutating func named(_ name: String, _ fields: [ArchiveValue.Field]) throws -> ArchiveValue {
    var names: Set<ExactText> = [ExactText(Self.classKey)]
    for field in fields where !names.insert(ExactText(field.key)).inserted { try lose(Self.twice) }
    return .structure(
      type: ObjectGraph.plain, [.init(key: Self.classKey, value: .string(name))] + (try self.fields(fields)))
  }

  /// What readers of the format leave out.
  private static let twice = "keys that occur twice, of which most readers use the last"

  private mutating func elements(_ values: [ArchiveValue]) throws -> [ArchiveValue] {
    var result: [ArchiveValue] = []
    result.reserveCapacity(values.count)
    for (index, inner) in values.enumerated() {
      path.append("[\(index)]")
      if let plain = try value(inner) { result.append(plain) }
      path.removeLast()
    }
    return result
  }

  private mutating func fields(_ fields: [ArchiveValue.Field]) throws -> [ArchiveValue.Field] {
    var result: [ArchiveValue.Field] = []
    result.reserveCapacity(fields.count)
    for field in fields {
      path.append(".\(field.key.prefix(80))")
      if let plain = try value(field.value) { result.append(.init(key: field.key, value: plain)) }
      path.removeLast()
    }
    return result
  }

  private mutating func dictionary(_ pairs: [ArchiveValue.Pair]) throws -> ArchiveValue? {
    var named: [ArchiveValue.Field] = []
    var keys: Set<ExactText> = []
    for pair in pairs {
      switch pair.key {
      case .string(let key): named.append(.init(key: key, value: pair.value))
      case .integer(let key):
        try lose("whole numbers as keys, as text")
        named.append(.init(key: "\(key)", value: pair.value))
      default:
        try lose("keys that aren't text, as lists of pairs")
        return .array(
          try pairs.enumerated().map { index, pair in
            path.append("[\(index)]")
            defer { path.removeLast() }
            return .array(try elements([pair.key, pair.value]))
          })
      }
    }
    for field in named where !keys.insert(ExactText(field.key)).inserted { try lose(Self.twice) }
    return .structure(type: ObjectGraph.plain, try fields(named))
  }

  // MARK: Giving up

  private mutating func spelled(_ text: String, _ what: String) throws -> ArchiveValue {
    try lose(what)
    return .string(text)
  }

  private mutating func lose(_ what: String) throws {
    guard isLossy else {
      let thing = what.prefix { $0 != "," }
      let tagged = target.isPlain ? "--tagged keeps them in a form that can be converted back; " : ""
      throw failure("\(target.words) has no \(thing)", next: "\(tagged)--lossy writes \(what)")
    }
    if let index = losses.firstIndex(where: { $0.what == what }) {
      losses[index].count += 1
    } else {
      losses.append(Loss(what: what, count: 1, path: place))
    }
  }

  private var place: String { Self.place(path) }

  /// Returns a path as text.
  static func place(_ path: [String]) -> String {
    // The end of a long path is the most informative part.
    let text = (path.count > 12 ? "…" : "") + path.suffix(12).joined()
    return text.isEmpty ? "the top" : text.hasPrefix(".") ? String(text.dropFirst()) : text
  }

  private func failure(_ message: String, next: String? = nil) -> CommandFailure {
    CommandFailure(
      .data, "\(place): \(message)",
      next: next
        ?? (target.isPlain
          ? "--tagged writes each object once, with references to it" : "convert it to a keyed archive"))
  }
}

extension PlainForm {
  /// Returns values without types or objects as a property list.
  static func list(_ value: ArchiveValue, _ graph: ObjectGraph, for target: FileFormat) throws -> PropertyList {
    if let uid = graph.uid(value) { return .uid(uid) }
    if let (_, inner, _) = ArchiveMark.unmarked(value), case .number(let number) = inner {
      return target == .binary ? .float(Float(number)) : .number(number)
    }
    switch value {
    case .none: return .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(Int128(value))
    case .unsigned(let value): return .integer(Int128(value))
    case .number(let value): return .number(value)
    case .decimal(let digits): return Int128(digits).map { .integer($0) } ?? .string(digits)
    case .string(let text), .url(let text): return .string(text)
    case .data(let data): return .data(data)
    case .date(let date): return .date(date)
    case .uuid(let uuid): return .string(uuid.uuidString)
    case .set(let values): return .set(try values.map { try list($0, graph, for: target) })
    case .array(let values), .vector(let values): return .array(try values.map { try list($0, graph, for: target) })
    case .structure(_, let fields):
      return .dictionary(try fields.map { .init($0.key, try list($0.value, graph, for: target)) })
    case .dictionary, .enumeration, .reference:
      throw CommandFailure(.software, "internal error: a value is left that has no plain form")
    }
  }
}
#endif
