import Foundation

/// Classes of a single value that correspond to a Swift type.
extension FoundationClass {
  static let data = FoundationClass(
    names: ["NSMutableData", "NSData"], superclasses: ["NSData"],
    read: { object in try object.part(object["NS.data"])?.data.map { .data($0) } },
    write: { content, _ in if case .data(let data) = content { [.init("NS.data", .data(data))] } else { nil } })

  static let date = FoundationClass(
    names: ["NSDate"],
    read: { object in object["NS.time"]?.number.map { .date(Date(timeIntervalSinceReferenceDate: $0)) } },
    write: { content, _ in
      if case .date(let date) = content {
        [.init("NS.time", .number(date.timeIntervalSinceReferenceDate))]
      } else {
        nil
      }
    })

  static let uuid = FoundationClass(
    names: ["NSUUID"],
    read: { object in
      guard let bytes = object["NS.uuidbytes"]?.data, bytes.count == 16 else { return nil }
      return .uuid(bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) })
    },
    write: { content, _ in
      guard case .uuid(let uuid) = content else { return nil }
      return [.init("NS.uuidbytes", .data(withUnsafeBytes(of: uuid.uuid) { Data($0) }))]
    })

  private static let mostBases = 8

  static let url = FoundationClass(
    names: ["NSURL"],
    read: { object in
      guard let relative = try object.text(object["NS.relative"]) else { return nil }
      // A base that has a base itself is rare; the limit ends cycles.
      var (text, base) = (relative, object["NS.base"])
      for _ in 0..<mostBases {
        guard let uid = base?.uid, uid != 0 else { break }
        let outer = try object.archive.object(uid)
        guard let front = try object.text(outer["NS.relative"]) else { break }
        text = URL(string: text, relativeTo: URL(string: front))?.absoluteString ?? text
        base = outer["NS.base"]
      }
      return .url(text)
    },
    write: { content, table in
      if case .url(let text) = content {
        [.init("NS.base", .uid(0)), .init("NS.relative", .uid(table.text(text)))]
      } else {
        nil
      }
    })

  static let null = FoundationClass(
    names: ["NSNull"], read: { _ in .null }, write: { content, _ in if case .null = content { [] } else { nil } })

  /// A number written as an object by a subclass of Foundation's archiver; in other archives a number is a plain value.
  static let number = FoundationClass(
    names: ["NSNumber"],
    read: { object in
      if let flag = object["NS.boolval"]?.bool { return .bool(flag) }
      if case .integer(let value) = object["NS.intval"] { return .integer(value) }
      if let value = object["NS.dblval"]?.number { return .number(value) }
      switch object["NS.number"] {
      case .bool(let flag): return .bool(flag)
      case .integer(let value): return .integer(value)
      case let value: return value?.number.map { .number($0) }
      }
    })

  /// Up to eight 16-bit digits, the lowest first, and the exponent to base ten.
  static let decimalNumber = FoundationClass(
    names: ["NSDecimalNumber", "NSDecimalNumberPlaceholder"], superclasses: ["NSNumber", "NSValue"],
    read: { object in
      guard let exponent = object["NS.exponent"]?.integer, let length = object["NS.length"]?.integer,
        (0...8).contains(length),
        (-128...127).contains(exponent), let mantissa = object["NS.mantissa"]?.data, mantissa.count >= 2 * length,
        let isNegative = object["NS.negative"]?.bool
      else { return nil }
      // The byte order of the machine that wrote it: 1 is little-endian, 2 big-endian.
      let isBig = object["NS.mantissa.bo"]?.integer == 2
      if length == 0 && isNegative { return .decimal("NaN") }
      var value = Decimal(0)
      for index in (0..<length).reversed() {
        let pair = mantissa.dropFirst(2 * index).prefix(2)
        let (first, second) = (UInt16(pair.first ?? 0), UInt16(pair.last ?? 0))
        value = value * 65_536 + Decimal(Int(isBig ? first << 8 | second : second << 8 | first))
      }
      return .decimal("\(Decimal(sign: isNegative ? .minus : .plus, exponent: exponent, significand: value))")
    },
    write: { content, _ in
      guard case .decimal(let text) = content, let value = text == "NaN" ? Decimal.nan : Decimal(string: text),
        var digits = value.isNaN ? 0 : UInt128("\(value.significand.magnitude)")
      else { return nil }
      var mantissa = Data()
      var length: Int128 = 0
      for _ in 0..<8 {
        let digit = UInt16(truncatingIfNeeded: digits)
        if digits > 0 { length += 1 }
        mantissa += [UInt8(digit & 0xFF), UInt8(digit >> 8)]
        digits >>= 16
      }
      // NaN has a sign and no digits.
      return [
        .init("NS.exponent", .integer(Int128(value.isNaN ? 0 : value.exponent))), .init("NS.length", .integer(length)),
        .init("NS.negative", .bool(value.isNaN || value.isSignMinus)), .init("NS.compact", false),
        .init("NS.mantissa.bo", 1),
        .init("NS.mantissa", .data(mantissa)),
      ]
    })
}
