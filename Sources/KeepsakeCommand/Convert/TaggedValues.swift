#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInterchange
import KeepsakeReplication

/// Writes values of an archive or a keyed archive in a form that JSON and property lists can hold and that can be read
/// back.
///
/// What these formats have is written as it is, the rest as a dictionary with one key that begins with a $, such as
/// `{"$date": "2026-01-01T00:00:00Z"}`. Keys that begin with a $ themselves get another one in front.
///
/// The table is in docs/INTERCHANGE.md.
struct TaggedValues {
  let graph: ObjectGraph
  /// Whether null needs a tag, because the format has none.
  let spellsNull: Bool
  private var depth = 0

  /// Levels that are needed around the values.
  private static let spareLevels = 8

  init(_ graph: ObjectGraph, for target: FileFormat) {
    self.graph = graph
    spellsNull = target != .json
  }

  // MARK: Writing

  /// Recurses once per level.
  mutating func list(_ value: ArchiveValue) throws -> PropertyList {
    depth += 1
    defer { depth -= 1 }
    guard depth <= PlainForm.maximumDepth - Self.spareLevels else {
      throw CommandFailure(
        .data, "values are nested more than \(PlainForm.maximumDepth - Self.spareLevels) levels deep",
        next: "convert it to a keyed archive"
      )
    }
    if let (mark, inner, index) = ArchiveMark.unmarked(value) { return try marked(mark, inner, index) }
    if let uid = graph.uid(value) { return tag("uid", .integer(Int128(uid))) }
    switch value {
    case .none: return spellsNull ? tag("null", .bool(true)) : .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(Int128(value))
    case .unsigned(let value): return .integer(Int128(value))
    case .number(let value): return value.isFinite ? .number(value) : tag("number", .string(TaggedNumber.text(value)))
    case .decimal(let digits): return Int128(digits).map { .integer($0) } ?? tag("decimal", .string(digits))
    case .string(let text): return .string(text)
    case .data(let data): return tag("data", .string(data.base64EncodedString()))
    case .date(let date): return tag("date", Self.text(date))
    case .uuid(let uuid): return tag("uuid", .string(uuid.uuidString))
    case .url(let text): return tag("url", .string(text))
    case .reference(let number): return tag("ref", .integer(Int128(number)))
    case .vector(let values), .array(let values): return .array(try values.map { try list($0) })
    case .set(let values): return tag("set", .array(try values.map { try list($0) }))
    case .dictionary(let pairs): return try dictionary(pairs)
    case .structure(let type, let inner):
      let name = graph.uidType == nil ? "" : graph.classes[type].name
      return .dictionary((name.isEmpty ? [] : [.init("$class", .string(name))]) + (try fields(inner)))
    case .enumeration(_, let name, let inner):
      return inner.isEmpty ? .string(name) : .dictionary([.init("$case", .string(name))] + (try fields(inner)))
    }
  }

  mutating func fields(_ fields: [ArchiveValue.Field]) throws -> [PropertyList.Entry] {
    try fields.map { .init($0.key.hasPrefix("$") ? "$" + $0.key : $0.key, try list($0.value)) }
  }

  private mutating func marked(_ mark: ArchiveMark, _ inner: ArchiveValue, _ index: Int) throws -> PropertyList {
    switch (mark, inner) {
    case (.type, _): return .dictionary([.init("$type", .integer(Int128(index))), .init("$value", try list(inner))])
    case (.decimal, .decimal(let digits)): return tag("decimal", .string(digits))
    default: return tag(mark.rawValue, try list(inner))
    }
  }

  private mutating func dictionary(_ pairs: [ArchiveValue.Pair]) throws -> PropertyList {
    let named = pairs.compactMap { pair -> ArchiveValue.Field? in
      if case .string(let key) = pair.key { .init(key: key, value: pair.value) } else { nil }
    }
    if named.count == pairs.count { return .dictionary(try fields(named)) }
    return tag("pairs", .array(try pairs.map { .array([try list($0.key), try list($0.value)]) }))
  }

  private func tag(_ name: String, _ value: PropertyList) -> PropertyList { .dictionary([.init("$" + name, value)]) }

  /// Returns a whole second of the calendar in ISO 8601, any other date as seconds since 2001.
  private static func text(_ date: Date) -> PropertyList {
    let seconds = date.timeIntervalSinceReferenceDate
    let text = PlainForm.sayableSeconds.contains(seconds) ? date.ISO8601Format() : ""
    if (try? Date(text, strategy: .iso8601))?.timeIntervalSinceReferenceDate.bitPattern == seconds.bitPattern {
      return .string(text)
    }
    return seconds.isFinite ? .number(seconds) : .string(TaggedNumber.text(seconds))
  }
}

/// Numbers that aren't finite, as text.
private enum TaggedNumber {
  /// What the bits of a NaN follow that isn't the usual one: nothing else tells it from others.
  private static let bitsMark = "nan:0x"

  static func text(_ value: Double) -> String {
    guard value.isNaN, value.bitPattern != Double.nan.bitPattern else { return "\(value)" }
    return bitsMark + String(value.bitPattern, radix: 16)
  }

  static func value(_ text: String) -> Double? {
    guard text.hasPrefix(bitsMark) else { return Double(text) }
    return UInt64(text.dropFirst(bitsMark.count), radix: 16).map { Double(bitPattern: $0) }.flatMap {
      $0.isNaN ? $0 : nil
    }
  }
}

/// Reads what `TaggedValues` wrote, including what people edited.
struct TaggedReader {
  /// The numbers of classes, by their names.
  var classes: [String: Int] = [:]
  private var path: [String] = []
  /// The highest number of an object that anything refers to.
  private var lastReference = -1

  init(classes: [String: Int] = [:]) { self.classes = classes }

  /// Recurses once per level; the readers of JSON and property lists allow a few hundred.
  mutating func value(_ list: PropertyList) throws -> ArchiveValue {
    switch list {
    case .array(let elements):
      return .array(
        try elements.enumerated().map { index, element in try step("[\(index)]") { try $0.value(element) } })
    case .set(let elements): return .set(try elements.map { try value($0) })
    case .dictionary(let entries): return try dictionary(entries)
    default: return ObjectGraph.value(of: list)
    }
  }

  private mutating func dictionary(_ entries: [PropertyList.Entry]) throws -> ArchiveValue {
    guard let first = entries.first(where: { Self.isTag($0.key) }) else {
      return .structure(type: ObjectGraph.plain, try fields(entries))
    }
    let others = entries.filter { $0.key != first.key }
    switch (first.key, first.value) {
    case ("$class", .string(let name)):
      guard let type = classes[name] else { throw failure("the class \(name.prefix(80)) isn't in the list of classes") }
      return .structure(type: type, try fields(others))
    case ("$case", .string(let name)): return .enumeration(type: ArchiveMark.noType, case: name, try fields(others))
    case ("$type", .integer(let index)):
      guard let index = Int(exactly: index), let inner = others.first(where: { $0.key == "$value" })?.value else {
        break
      }
      return ArchiveMark.typed(try value(inner), index)
    case ("$value", let inner):
      guard case .integer(let index) = others.first(where: { $0.key == "$type" })?.value,
        let index = Int(exactly: index)
      else { break }
      return ArchiveMark.typed(try value(inner), index)
    default:
      if others.isEmpty, let value = try single(first.key, first.value) { return value }
    }
    throw failure("\(first.key.prefix(80)) doesn't form a valid value here")
  }

  /// Checks that everything that was read refers to one of `count` objects. Call it after everything was read.
  func check(references count: Int) throws {
    guard lastReference < count else {
      throw failure("a $ref leads to object \(lastReference), but the file has only \(CountText.of(count, "object"))")
    }
  }

  /// Reads a tag that is alone in its dictionary.
  private mutating func single(_ key: String, _ inner: PropertyList) throws -> ArchiveValue? {
    switch (key, inner) {
    case ("$null", _): return ArchiveValue.none
    case ("$number", .string(let text)): return TaggedNumber.value(text).map { .number($0) }
    case ("$decimal", .string(let digits)): return try decimal(digits)
    case ("$data", .string(let text)): return Data(base64Encoded: text).map { .data($0) }
    case ("$data", .data(let data)): return .data(data)
    case ("$date", .date(let date)): return .date(date)
    case ("$date", .string(let text)):
      if let seconds = TaggedNumber.value(text) { return .date(Date(timeIntervalSinceReferenceDate: seconds)) }
      return (try? Date(text, strategy: .iso8601)).map { .date($0) }
    case ("$date", .number(let seconds)): return .date(Date(timeIntervalSinceReferenceDate: seconds))
    case ("$date", .integer(let seconds)): return .date(Date(timeIntervalSinceReferenceDate: Double(seconds)))
    case ("$uuid", .string(let text)): return UUID(uuidString: text).map { .uuid($0) }
    case ("$url", .string(let text)): return .url(text)
    case ("$uid", .integer(let number)): return UInt64(exactly: number).map { ObjectGraph.uid($0) }
    case ("$ref", .integer(let number)):
      guard let number = Int(exactly: number), number >= 0 else { return nil }
      lastReference = max(lastReference, number)
      return .reference(number)
    case ("$set", .array(let elements)): return .set(try elements.map { try value($0) })
    case ("$pairs", .array(let pairs)):
      return .dictionary(
        try pairs.map { pair in
          guard case .array(let both) = pair, both.count == 2 else {
            throw failure("each entry of $pairs has to be a list of two values")
          }
          return .init(key: try value(both[0]), value: try value(both[1]))
        })
    case ("$some", let inner): return ArchiveMark.marked(.some, try value(inner))
    case ("$inPlace", let inner): return ArchiveMark.marked(.inPlace, try value(inner))
    case ("$boxed", let inner): return ArchiveMark.marked(.boxed, try value(inner))
    case ("$float", let inner): return ArchiveMark.marked(.float, try value(inner))
    default: return nil
    }
  }

  private func decimal(_ digits: String) throws -> ArchiveValue {
    let significant = digits.prefix { $0 != "e" && $0 != "E" }.filter(\.isNumber).drop { $0 == "0" }
    let count = String(significant.reversed()).drop { $0 == "0" }.count
    guard count <= Self.decimalDigits else {
      throw failure(
        "the number \(digits.prefix(80)) has \(CountText.of(count, "digit")), but a decimal number has at most "
          + "\(Self.decimalDigits)"
      )
    }
    return ArchiveMark.marked(.decimal, .decimal(digits))
  }

  /// Every decimal number with this many digits can be held; some with one more can, too.
  private static let decimalDigits = 38

  mutating func fields(_ entries: [PropertyList.Entry]) throws -> [ArchiveValue.Field] {
    try entries.map { entry in
      guard !Self.isTag(entry.key) else {
        throw failure(
          "the key \(entry.key.prefix(80)) isn't known here: write a second $ in front of a key that begins with one")
      }
      let key = entry.key.hasPrefix("$") ? String(entry.key.dropFirst()) : entry.key
      return .init(key: key, value: try step(".\(key)") { try $0.value(entry.value) })
    }
  }

  private static func isTag(_ key: String) -> Bool { key.hasPrefix("$") && !key.hasPrefix("$$") }

  private mutating func step<Result>(_ name: String, _ body: (inout TaggedReader) throws -> Result) throws -> Result {
    path.append(name)
    let result = try body(&self)
    path.removeLast()
    return result
  }

  func failure(_ message: String) -> CommandFailure {
    let place = (path.count > 12 ? "…" : "") + path.suffix(12).joined()
    return CommandFailure(
      .data, (place.isEmpty ? "" : (place.hasPrefix(".") ? String(place.dropFirst()) : place) + ": ") + message)
  }
}
#endif
