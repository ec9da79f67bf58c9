import Foundation

/// Foundation's own classes, and AppKit's and UIKit's colours, seen through. As which keys their values are saved isn't documented by Apple: it was read from real files, and from what Foundation on Linux writes.
extension KeyedArchive {
  /// nil for a class that isn't one of Foundation's for values and collections, or doesn't have what those have.
  func foundation(_ name: ClassName, _ object: PropertyList) throws -> KeyedContent? {
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
    case "NSNumber": return Self.number(object)
    case "NSArray", "NSMutableArray": return Self.elements(object).map { .list($0) }
    case "NSSet", "NSMutableSet": return Self.elements(object).map { .set($0) }
    case "NSOrderedSet", "NSMutableOrderedSet": return .list(object["NS.objects"]?.array ?? Self.numbered("NS.object.", in: object))
    case "NSDictionary", "NSMutableDictionary":
      guard let keys = object["NS.keys"]?.array, let values = object["NS.objects"]?.array else { return Self.pairs(object) }
      guard keys.count == values.count else {
        throw PropertyListError(.damaged, "A dictionary has \(keys.count) keys and \(values.count) values: the file was altered")
      }
      return .pairs(keys: keys, values: values)
    case "NSDecimalNumber", "NSDecimalNumberPlaceholder": return Self.decimal(object).map { .decimal($0) }
    case "NSValue": return try shape(object)
    case "NSAttributedString", "NSMutableAttributedString": return try attributed(object)
    case "NSColor", "UIColor": return try KeyedColor.content(name, object, part)
    case "NSIndexPath": return try indexPath(object)
    case "NSIndexSet", "NSMutableIndexSet": return try indexSet(object)
    case "NSCountedSet": return Self.counted(object)
    case "NSMeasurement": return try measurement(object)
    default: return nil
    }
  }

  /// Subclasses of Foundation's archiver save each element under a key of its own: `NS.object.0` and so on.
  private static func numbered(_ key: String, in object: PropertyList) -> [PropertyList] {
    let byKey = PropertyList.index(object.dictionary ?? [])
    var elements: [PropertyList] = []
    while let element = byKey[key + "\(elements.count)"] { elements.append(element) }
    return elements
  }

  /// nil for what has other fields, too.
  private static func elements(_ object: PropertyList) -> [PropertyList]? {
    if let elements = object["NS.objects"]?.array { return elements }
    let elements = numbered("NS.object.", in: object)
    return elements.count + 1 == object.dictionary?.count ? elements : nil
  }

  /// Of a dictionary of such an archiver, which has `NS.key.0` as well. The class is one of the entries.
  private static func pairs(_ object: PropertyList) -> KeyedContent? {
    let (keys, values) = (numbered("NS.key.", in: object), numbered("NS.object.", in: object))
    guard keys.count == values.count, 2 * keys.count + 1 == object.dictionary?.count else { return nil }
    return .pairs(keys: keys, values: values)
  }

  /// A number that such an archiver made an object of.
  private static func number(_ object: PropertyList) -> KeyedContent? {
    if let flag = object["NS.boolval"]?.bool { return .bool(flag) }
    if case .integer(let value) = object["NS.intval"] { return .integer(value) }
    if let value = object["NS.dblval"]?.number { return .number(value) }
    switch object["NS.number"] {
    case .bool(let flag): return .bool(flag)
    case .integer(let value): return .integer(value)
    case let value: return value?.number.map { .number($0) }
    }
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
    if let insets = Self.insets(object) { return insets }
    guard case .integer(let location) = try part(object["NS.rangeval.location"]),
      case .integer(let length) = try part(object["NS.rangeval.length"]), UInt64(exactly: location) != nil, UInt64(exactly: length) != nil
    else { return nil }
    return .range(location: location, length: length)
  }

  private static func insets(_ object: PropertyList) -> KeyedContent? {
    var parts: [(name: String, value: KeyedContent)] = []
    for side in ["top", "left", "bottom", "right"] {
      guard let number = object["NS.edgeval.\(side)"]?.number else { return nil }
      parts.append((side, .number(number)))
    }
    return .shape(parts)
  }

  // MARK: Indexes

  /// One index stands by itself; of several, each in as few bytes as it takes.
  private func indexPath(_ object: PropertyList) throws -> KeyedContent? {
    guard let length = object["NSIndexPathLength"]?.integer, length >= 0 else { return nil }
    switch length {
    case 0: return .list([])
    case 1: return try part(object["NSIndexPathValue"]).flatMap { $0.integer == nil ? nil : .list([$0]) }
    default:
      guard let numbers = try packed(object["NSIndexPathData"]), numbers.count == length else { return nil }
      return .list(numbers.map { .integer(Int128($0)) })
    }
  }

  private func indexSet(_ object: PropertyList) throws -> KeyedContent? {
    guard let count = object["NSRangeCount"]?.integer, count >= 0 else { return nil }
    switch count {
    case 0: return .indexes([])
    case 1:
      guard let location = object["NSLocation"]?.integer, let length = object["NSLength"]?.integer else { return nil }
      return .indexes([(location, length)])
    default:
      guard let numbers = try packed(object["NSRangeData"]), numbers.count / 2 == count, numbers.count.isMultiple(of: 2) else { return nil }
      return .indexes(stride(from: 0, to: numbers.count, by: 2).map { (numbers[$0], numbers[$0 + 1]) })
    }
  }

  /// Numbers of seven bits a byte, the lowest first; the last byte of each is below 128. nil if the data is something else.
  private func packed(_ value: PropertyList?) throws -> [Int]? {
    let object = try part(value)
    guard let data = try object?.data ?? part(object?["NS.data"])?.data else { return nil }
    var numbers: [Int] = []
    var (number, shift) = (UInt64(0), UInt64(0))
    for byte in data {
      let bits = UInt64(byte & 0x7F)
      guard shift < 64, (bits << shift) >> shift == bits else { return nil }
      number |= bits << shift
      shift += 7
      guard byte < 0x80 else { continue }
      guard let whole = Int(exactly: number) else { return nil }
      numbers.append(whole)
      (number, shift) = (0, 0)
    }
    return shift == 0 ? numbers : nil
  }

  /// How often each element is in the set.
  private static func counted(_ object: PropertyList) -> KeyedContent? {
    let byKey = PropertyList.index(object.dictionary ?? [])
    guard let count = byKey["NS.count"]?.integer, count >= 0, count < byKey.count else { return nil }
    let pairs = (0..<count).compactMap { index in
      byKey["NS.object\(index)"].flatMap { element in byKey["NS.count\(index)"].map { (element, $0) } }
    }
    return pairs.count == count ? .pairs(keys: pairs.map(\.0), values: pairs.map(\.1)) : nil
  }

  // MARK: Texts and measurements

  /// Attributes for the whole text, or several with the length of the text that each is for.
  private func attributed(_ object: PropertyList) throws -> KeyedContent? {
    guard let text = try text(object["NSString"]) else { return nil }
    guard let given = object["NSAttributes"], let attributes = try part(given) else { return .string(text) }
    let count = text.utf16.count
    func run(_ location: Int, _ length: Int, _ attributes: PropertyList) -> PropertyList {
      ["location": .integer(Int128(location)), "length": .integer(Int128(length)), "attributes": attributes]
    }
    guard let all = attributes["NS.objects"]?.array, attributes["NS.keys"] == nil else {
      return .attributed(text, runs: [run(0, count, given)])
    }
    guard let info = try packed(object["NSAttributeInfo"]), info.count.isMultiple(of: 2) else { return nil }
    var runs: [PropertyList] = []
    var location = 0
    for place in stride(from: 0, to: info.count, by: 2) {
      let (length, index) = (info[place], info[place + 1])
      guard all.indices.contains(index), length > 0, length <= count - location else { return nil }
      runs.append(run(location, length, all[index]))
      location += length
    }
    return location == count ? .attributed(text, runs: runs) : nil
  }

  /// A number and its unit, with the keys of Foundation's `Measurement`.
  private func measurement(_ object: PropertyList) throws -> KeyedContent? {
    guard let value = object["NS.value"]?.number, let given = try part(object["NS.unit"]), let unit = try className(of: given),
      let symbol = try text(given["NS.symbol"])
    else { return nil }
    var fields: [PropertyList.Entry] = [.init("symbol", .string(symbol)), .init("class", .string(unit.name))]
    if let specifier = given["NS.specifier"] { fields.append(.init("specifier", specifier)) }
    if let converter = try part(given["NS.converter"]) {
      guard let coefficient = converter["NS.coefficient"]?.number, let constant = converter["NS.constant"]?.number else { return nil }
      fields.append(.init("converter", ["coefficient": .number(coefficient), "constant": .number(constant)]))
    }
    return .fields([.init("value", .number(value)), .init("unit", .dictionary(fields))])
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
