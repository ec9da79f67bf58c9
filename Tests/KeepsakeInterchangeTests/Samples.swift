import Foundation
import KeepsakeInterchange

/// Property lists with values of every kind.
enum Samples {
  /// Integers at the limits of each encoded size.
  static let integers: [Int128] = [
    0, 1, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x1_0000, 0xFFFF_FFFF, 0x1_0000_0000, Int128(Int64.max), -1, -128, -129,
    -40_000,
    Int128(Int64.min),
  ]
  /// Integers outside of the range of signed 64-bit numbers. Foundation reads only those that fit unsigned ones.
  static let wideIntegers: [Int128] = [
    Int128(Int64.max) + 1, Int128(UInt64.max), Int128(UInt64.max) + 1, Int128(Int64.min) - 1, .max, .min,
  ]
  static let numbers: [Double] = [
    0, -0.0, 1.5, .pi, -1e300, .leastNonzeroMagnitude, .infinity, -.infinity, 1e16, 123_456_789.125,
  ]
  static let strings = [
    "", "a", "Bärenhöhle", "日本語", "👾 invader", "e\u{301}", "<&>\"'", "two\nlines\ttab",
    String(repeating: "long ", count: 40),
    String(repeating: "ü", count: 300), " ", "  both ends  ",
  ]
  static let dates = [0, 1, -1, 86_399, 86_400, -978_307_200, 700_000_000, -63_113_904_000 + 86_400, 252_423_993_599]
    .map {
      Date(timeIntervalSinceReferenceDate: TimeInterval($0))
    }
  static let datas = [Data(), Data([0]), Data(0...255), Data(repeating: 7, count: 70_000)]

  /// Values that every format and every reader supports.
  static let plain: PropertyList = .dictionary([
    .init("integers", .array(integers.map { .integer($0) })), .init("numbers", .array(numbers.map { .number($0) })),
    .init("strings", .array(strings.map { .string($0) })), .init("dates", .array(dates.map { .date($0) })),
    .init("datas", .array(datas.map { .data($0) })), .init("yes", true), .init("no", false), .init("empty", [:]),
    .init("none", []),
    .init("", "the empty key"), .init("ключ", ["nested": [["deep": [1, 2.5, "three"]]]]),
    .init("many", .array((0..<300).map { .integer($0) })),
    .init("wide", .dictionary((0..<70).map { .init("key \($0)", .integer($0)) })),
  ])

  /// Values that only the binary format supports.
  static let binaryOnly: PropertyList = [
    "null": .null, "floats": .array([0.1, -3.5, .infinity].map { .float($0) }), "set": .set([1, "two", 3.5]),
    "uids": .array([0, 255, 256, 65_535, 65_536, 0xFFFF_FFFF, 0x1_0000_0000, .max].map { .uid($0) }),
    "wide": .array(wideIntegers.map { .integer($0) }), "late": .date(Date(timeIntervalSinceReferenceDate: 1.25e12)),
    // Foundation drops the byte order mark from XML.
    "mark": "\u{FEFF}mark", "control": "\u{0}\u{1}\r", "between": .date(Date(timeIntervalSinceReferenceDate: 0.125)),
  ]

  static let all: PropertyList = ["plain": plain, "binary": binaryOnly]
}
