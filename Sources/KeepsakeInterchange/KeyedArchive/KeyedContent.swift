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
  /// A point, size, rectangle or range: numbers, by name or in their order.
  case shape([(name: String, value: KeyedContent)])
  /// A dictionary that is no object.
  case fields([PropertyList.Entry])
  /// Of any other class.
  case object(KeyedArchive.ClassName, [PropertyList.Entry])

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
    case .shape: "a point, size, rectangle or range"
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

  /// nil for a class that isn't one of Foundation's for values and collections, or doesn't have what those have.
  private func foundation(_ name: ClassName, _ object: PropertyList) throws -> KeyedContent? {
    // A subclass that somebody wrote has more than its superclass: only the classes themselves count.
    switch name.name {
    case "NSString", "NSMutableString":
      if let text = object["NS.string"]?.string { return .string(text) }
      guard let bytes = object["NS.bytes"]?.data, let text = String(validating: bytes, as: UTF8.self) else { return nil }
      return .string(text)
    case "NSData", "NSMutableData":
      return try part(object["NS.data"])?.data.map { .data($0) }
    case "NSDate": return object["NS.time"]?.number.map { .date(Date(timeIntervalSinceReferenceDate: $0)) }
    case "NSNull": return .null
    case "NSUUID":
      guard let bytes = object["NS.uuidbytes"]?.data, bytes.count == 16 else { return nil }
      return .uuid(bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) })
    case "NSURL": return try url(object)
    case "NSArray", "NSMutableArray": return object["NS.objects"]?.array.map { .list($0) }
    case "NSSet", "NSMutableSet": return object["NS.objects"]?.array.map { .set($0) }
    case "NSOrderedSet", "NSMutableOrderedSet": return .list(object["NS.objects"]?.array ?? Self.numbered(object))
    case "NSDictionary", "NSMutableDictionary":
      guard let keys = object["NS.keys"]?.array, let values = object["NS.objects"]?.array else { return nil }
      guard keys.count == values.count else {
        throw PropertyListError(.damaged, "A dictionary has \(keys.count) keys and \(values.count) values: the file was altered")
      }
      return .pairs(keys: keys, values: values)
    case "NSDecimalNumber", "NSDecimalNumberPlaceholder": return Self.decimal(object).map { .decimal($0) }
    case "NSValue": return try shape(object)
    case "NSAttributedString", "NSMutableAttributedString":
      // Of one with attributes nothing may be lost: it stays an object.
      return object["NSAttributes"] == nil ? try text(object["NSString"]).map { .string($0) } : nil
    default: return nil
    }
  }

  private static func numbered(_ object: PropertyList) -> [PropertyList] {
    let byKey = PropertyList.index(object.dictionary ?? [])
    var elements: [PropertyList] = []
    while let element = byKey["NS.object.\(elements.count)"] { elements.append(element) }
    return elements
  }

  private func url(_ object: PropertyList) throws -> KeyedContent? {
    guard let relative = try text(object["NS.relative"]) else { return nil }
    // A URL whose base has a base is rare; what leads in a circle isn't followed.
    var (text, base) = (relative, object["NS.base"])
    for _ in 0..<Self.mostBases {
      guard let uid = base?.uid, uid != 0 else { break }
      let outer = try self.object(uid)
      guard let front = try self.text(outer["NS.relative"]) else { break }
      text = URL(string: text, relativeTo: URL(string: front))?.absoluteString ?? text
      base = outer["NS.base"]
    }
    return .url(text)
  }

  private static let mostBases = 8

  /// Up to eight 16-bit digits, the lowest first.
  private static func decimal(_ object: PropertyList) -> String? {
    guard let exponent = object["NS.exponent"]?.integer, let length = object["NS.length"]?.integer, (0...8).contains(length),
      (-128...127).contains(exponent), let mantissa = object["NS.mantissa"]?.data, mantissa.count >= 2 * length,
      let isNegative = object["NS.negative"]?.bool
    else { return nil }
    // In the byte order of the machine that wrote: 1 is little-endian, 2 big-endian.
    let isBig = object["NS.mantissa.bo"]?.integer == 2
    if length == 0 && isNegative { return "NaN" }
    var value = Decimal(0)
    for index in (0..<length).reversed() {
      let pair = mantissa.dropFirst(2 * index).prefix(2)
      let (first, second) = (UInt16(pair.first ?? 0), UInt16(pair.last ?? 0))
      value = value * 65_536 + Decimal(Int(isBig ? first << 8 | second : second << 8 | first))
    }
    return "\(Decimal(sign: isNegative ? .minus : .plus, exponent: exponent, significand: value))"
  }

  private func shape(_ object: PropertyList) throws -> KeyedContent? {
    for key in ["NS.pointval", "NS.sizeval", "NS.rectval"] {
      guard let text = try text(object[key]) else { continue }
      return KeyedShape.content(text, isSize: key == "NS.sizeval")
    }
    guard case .integer(let location) = try part(object["NS.rangeval.location"]),
      case .integer(let length) = try part(object["NS.rangeval.length"])
    else { return nil }
    return .shape([("location", .integer(location)), ("length", .integer(length))])
  }

  /// A value of one of Foundation's classes, behind one reference at most: a forged one may lead in circles.
  private func part(_ value: PropertyList?) throws -> PropertyList? {
    guard let uid = value?.uid else { return value }
    return uid == 0 ? nil : try object(uid)
  }

  private func text(_ value: PropertyList?) throws -> String? {
    let part = try part(value)
    return part?.string ?? part?["NS.string"]?.string
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

/// Points, sizes and rectangles as texts: `{1, 2}` and `{{0, 0}, {10, 20}}`.
enum KeyedShape {
  static func content(_ text: String, isSize: Bool = false) -> KeyedContent? {
    guard text.utf8.first == UInt8(ascii: "{"), text.utf8.count < 400 else { return nil }
    let numbers = text.split { " ,{}".contains($0) }.map { Double($0) }
    guard numbers.allSatisfy({ $0 != nil }) else { return nil }
    let values = numbers.compactMap { $0 }
    switch values.count {
    case 2: return pair(values[0], values[1], isSize ? ("width", "height") : ("x", "y"))
    case 4: return .shape([("origin", pair(values[0], values[1], ("x", "y"))), ("size", pair(values[2], values[3], ("width", "height")))])
    default: return nil
    }
  }

  private static func pair(_ first: Double, _ second: Double, _ names: (String, String)) -> KeyedContent {
    .shape([(names.0, .number(first)), (names.1, .number(second))])
  }
}
