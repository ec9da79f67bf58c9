import Foundation

/// What a place in a keyed archive holds, with the classes of Foundation seen through: a text is a text, whether it stands for itself or in an object of NSMutableString.
enum KeyedContent {
  case null
  case bool(Bool)
  case integer(Int128)
  case number(Double)
  case string(String)
  case data(Data)
  case date(Date)
  case url(String)
  case uuid(UUID)
  case decimal(String)
  /// Of NSArray, NSOrderedSet, and lists that aren't objects.
  case list([PropertyList])
  case set([PropertyList])
  /// Of NSDictionary.
  case pairs(keys: [PropertyList], values: [PropertyList])
  /// A point, size or rectangle, or insets: numbers, by name or in their order.
  case shape([(name: String, value: KeyedContent)])
  case range(location: Int128, length: Int128)
  /// Of NSIndexSet, ascending.
  case indexes([(location: Int, length: Int)])
  /// Red, green, blue and alpha, and the object that they are of. It is whole if they are all that it has.
  case color([Double], KeyedArchive.ClassName, [PropertyList.Entry], isWhole: Bool)
  /// A text, and for each part of it with attributes of its own `location`, `length` and `attributes`; in units of UTF-16, as everywhere in Foundation.
  case attributed(String, runs: [PropertyList])
  /// A dictionary that is no object.
  case fields([PropertyList.Entry])
  /// Of any other class.
  case object(KeyedArchive.ClassName, [PropertyList.Entry])

  /// What somebody sees who has no types: nothing is left out.
  var shown: KeyedContent {
    switch self {
    case .range(let location, let length): return .shape([("location", .integer(location)), ("length", .integer(length))])
    case .indexes(let ranges):
      return .list(ranges.map { ["location": .integer(Int128($0.location)), "length": .integer(Int128($0.length))] })
    case .color(_, let name, let fields, isWhole: false): return .object(name, fields)
    case .color(let components, _, let fields, isWhole: true):
      let space = fields.last { $0.key == KeyedColor.space }?.value.integer
      return .shape(KeyedColor.parts(components) + (space.map { [("colorSpace", .integer(Int128($0)))] } ?? []))
    case .attributed(let text, let runs): return .fields([.init("text", .string(text)), .init("runs", .array(runs))])
    default: return self
    }
  }

  /// Numbers in their order, each with its name; nil for what has none.
  var parts: [(name: String, value: KeyedContent)]? {
    switch self {
    case .shape(let parts): parts
    case .range(let location, let length): [("location", .integer(location)), ("length", .integer(length))]
    case .color(let components, _, _, _): KeyedColor.parts(components)
    default: nil
    }
  }

  /// How many values it has.
  var count: Int {
    switch self {
    case .list(let elements), .set(let elements): elements.count
    case .pairs(let keys, _): keys.count
    case .fields(let entries), .object(_, let entries): entries.count
    case .indexes(let ranges): ranges.count
    default: 1
    }
  }

  /// In a few words, whatever is inside.
  var summary: String {
    switch self {
    case .null: "nil"
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .number(let value): "\(value)"
    case .string(let text): "\"\(text.prefix(40))\(text.count > 40 ? "..." : "")\""
    case .data(let data): "\(data.count) bytes of data"
    case .date(let date): "the date \(XMLDate.text(date) ?? "\(date.timeIntervalSinceReferenceDate)")"
    case .url(let text): "the URL \(text.prefix(80))"
    case .uuid(let uuid): "the UUID \(uuid)"
    case .decimal(let digits): digits
    case .list(let elements): "a list of \(elements.count)"
    case .set(let elements): "a set of \(elements.count)"
    case .pairs(let keys, _): "a dictionary of \(keys.count)"
    case .shape: "a point, size, rectangle or insets"
    case .range: "a range"
    case .indexes(let ranges): "an index set of \(ranges.count) ranges"
    case .color: "a colour"
    case .attributed(let text, _): "the attributed text \"\(text.prefix(40))\(text.count > 40 ? "..." : "")\""
    case .fields(let entries): "a dictionary of \(entries.count)"
    case .object(let name, _): "an object of the class \(name.name)"
    }
  }
}

extension KeyedArchive {
  /// Sees through references and Foundation's own classes.
  func content(of value: PropertyList) throws -> KeyedContent {
    guard let uid = value.uid else { return try plain(value) }
    let object = try object(uid)
    guard uid != 0, object != .string(Self.null) else { return .null }
    if object.uid != nil { throw PropertyListError(.damaged, "Object \(uid) is only a reference: the file was altered") }
    return try plain(object)
  }

  private func plain(_ value: PropertyList) throws -> KeyedContent {
    switch value {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(value)
    case .number(let value): return .number(value)
    case .float(let value): return .number(Double(value))
    case .string(let value): return .string(value)
    case .data(let value): return .data(value)
    case .date(let value): return .date(value)
    case .uid: return try content(of: value)
    case .array(let elements): return .list(elements)
    case .set(let elements): return .set(elements)
    case .dictionary(let fields):
      guard let name = try className(of: value) else { return .fields(fields) }
      return try foundation(name, value) ?? .object(name, fields.filter { $0.key != "$class" })
    }
  }
}

/// What the objects of an archive hold, each looked at once, however many references lead there.
final class KeyedContents {
  private let archive: KeyedArchive
  private var known: [UInt64: KeyedContent] = [:]

  init(_ archive: KeyedArchive) { self.archive = archive }

  func content(of value: PropertyList) throws -> KeyedContent {
    guard let uid = value.uid else { return try archive.content(of: value) }
    if let content = known[uid] { return content }
    let content = try archive.content(of: value)
    known[uid] = content
    return content
  }
}
