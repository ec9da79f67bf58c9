import Foundation

/// Numbers the objects of an archive and puts them together.
struct KeyedAssembly {
  private var objects: [PropertyList] = [.string(KeyedArchive.null)]
  private var classes: [String: UInt64] = [:]
  private var texts: [ExactText: UInt64] = [:]

  mutating func list(_ root: KeyedBox, key: String) -> PropertyList {
    let reference = reference(root)
    return [
      "$version": .integer(KeyedArchive.version), "$archiver": "NSKeyedArchiver", "$top": .dictionary([.init(key, reference)]),
      "$objects": .array(objects),
    ]
  }

  /// Calls itself for each level, of which the encoder has let through some hundred at most.
  private mutating func reference(_ box: KeyedBox) -> PropertyList {
    if let uid = box.uid { return .uid(UInt64(uid)) }
    if case .null = box.content { return .uid(0) }
    if case .string(let text) = box.content {
      // A text that is what stands for nil takes the long way.
      if text == KeyedArchive.null { return object("NSString", above: [], [.init("NS.string", .string(text))]) }
      if let known = texts[ExactText(text)] { return .uid(known) }
      texts[ExactText(text)] = UInt64(objects.count)
    }
    // Its place is taken before what is inside of it: the root comes first, as Foundation has it.
    let uid = objects.count
    box.uid = uid
    objects.append(.null)
    objects[uid] = object(box)
    return .uid(UInt64(uid))
  }

  private mutating func object(_ box: KeyedBox) -> PropertyList {
    switch box.content {
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(value)
    case .number(let value): return .number(value)
    case .float(let value): return .float(value)
    case .string(let value): return .string(value)
    case .data(let value): return body("NSMutableData", ["NSData"], [.init("NS.data", .data(value))])
    case .date(let value): return body("NSDate", [], [.init("NS.time", .number(value.timeIntervalSinceReferenceDate))])
    case .url(let value):
      return body("NSURL", [], [.init("NS.base", .uid(0)), .init("NS.relative", reference(KeyedBox(.string(value.absoluteString))))])
    case .uuid(let value): return body("NSUUID", [], [.init("NS.uuidbytes", .data(withUnsafeBytes(of: value.uuid) { Data($0) }))])
    case .decimal(let value): return body("NSDecimalNumber", ["NSNumber", "NSValue"], Self.fields(of: value))
    case .list(let elements): return body("NSArray", [], [.init("NS.objects", .array(elements.map { reference($0) }))])
    case .set(let elements): return body("NSSet", [], [.init("NS.objects", .array(elements.map { reference($0) }))])
    case .pairs(let elements):
      let keys = stride(from: 0, to: elements.count - 1, by: 2).map { elements[$0] }
      let values = stride(from: 1, to: elements.count, by: 2).map { elements[$0] }
      return dictionary(keys, values)
    case .fields(let fields):
      guard let name = box.ancestry.first else { return dictionary(fields.map { KeyedBox(.string($0.key)) }, fields.map(\.value)) }
      // An archiver's own keys begin with a $; those of an object get another one in front.
      let entries = fields.map { PropertyList.Entry($0.key.hasPrefix("$") ? "$" + $0.key : $0.key, field($0.value)) }
      return body(name, Array(box.ancestry.dropFirst()), entries)
    case .null, nil: return .null
    }
  }

  /// Numbers and flags stand in the object itself.
  private mutating func field(_ box: KeyedBox) -> PropertyList {
    switch box.content {
    case .bool, .integer, .number, .float: object(box)
    default: reference(box)
    }
  }

  private mutating func dictionary(_ keys: [KeyedBox], _ values: [KeyedBox]) -> PropertyList {
    let keys = keys.map { reference($0) }
    return body("NSDictionary", [], [.init("NS.keys", .array(keys)), .init("NS.objects", .array(values.map { reference($0) }))])
  }

  private mutating func object(_ name: String, above: [String], _ entries: [PropertyList.Entry]) -> PropertyList {
    let uid = objects.count
    objects.append(.null)
    objects[uid] = body(name, above, entries)
    return .uid(UInt64(uid))
  }

  private mutating func body(_ name: String, _ above: [String], _ entries: [PropertyList.Entry]) -> PropertyList {
    .dictionary(entries + [.init("$class", .uid(number(ofClass: name, above)))])
  }

  private mutating func number(ofClass name: String, _ above: [String]) -> UInt64 {
    if let number = classes[name] { return number }
    let number = UInt64(objects.count)
    classes[name] = number
    let ancestry = ([name] + above + ["NSObject"]).map { PropertyList.string($0) }
    objects.append(["$classname": .string(name), "$classes": .array(ancestry)])
    return number
  }

  /// Up to eight 16-bit digits, the lowest first and each in little-endian order.
  private static func fields(of value: Decimal) -> [PropertyList.Entry] {
    var digits = UInt128("\(value.significand.magnitude)") ?? 0
    var mantissa = Data()
    var length = 0
    for _ in 0..<8 {
      let digit = UInt16(truncatingIfNeeded: digits)
      if digits > 0 { length += 1 }
      mantissa += [UInt8(digit & 0xFF), UInt8(digit >> 8)]
      digits >>= 16
    }
    // Not-a-number has a sign and no digits.
    return [
      .init("NS.exponent", .integer(Int128(value.isNaN ? 0 : value.exponent))), .init("NS.length", .integer(Int128(length))),
      .init("NS.negative", .bool(value.isNaN || value.isSignMinus)), .init("NS.compact", false), .init("NS.mantissa.bo", 1),
      .init("NS.mantissa", .data(mantissa)),
    ]
  }
}
