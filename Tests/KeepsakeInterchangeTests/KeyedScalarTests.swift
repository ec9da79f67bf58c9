import Foundation
import KeepsakeArchive
import KeepsakeInterchange
import Testing

/// Values of Foundation's classes whose form depends on the value, or on the machine that wrote it.
struct KeyedScalarTests {
  @Test(
    "a date is read and written exactly, before 2001 and before 1970 as well as after",
    arguments: [-0.25, -86_400, -978_307_200.5, -2_000_000_000, 0, 700_000_000.125])
  func dates(seconds: Double) throws {
    let date = Date(timeIntervalSinceReferenceDate: seconds)
    let saved = try KeyedArchive(
      KeyedArchiveTests.archive([
        ["NS.time": .number(seconds), "$class": .uid(2)], KeyedArchiveTests.name("NSDate"),
      ]))
    #expect(try saved.decode(Date.self) == date)
    #expect(try saved.tree().top["root"] == .date(date))
    let read = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSDate.self, from: KeyedArchive.encode(date))
    #expect(read as Date? == date)
  }

  @Test("a decimal number is read in the byte order of the machine that wrote it; without one, as little-endian")
  func decimalByteOrder() throws {
    func decode(order: PropertyList?, _ digits: [UInt8]) throws -> Decimal {
      let mantissa = Data(digits + [UInt8](repeating: 0, count: 16 - digits.count))
      let fields: [PropertyList.Entry] =
        [
          .init("NS.exponent", -2), .init("NS.length", 2), .init("NS.negative", true), .init("NS.compact", true),
          .init("NS.mantissa", .data(mantissa)), .init("$class", .uid(2)),
        ] + (order.map { [PropertyList.Entry("NS.mantissa.bo", $0)] } ?? [])
      let list = KeyedArchiveTests.archive([
        .dictionary(fields), KeyedArchiveTests.name("NSDecimalNumber", "NSNumber", "NSValue"),
      ])
      return try KeyedArchive(list).decode(Decimal.self)
    }
    let amount = Decimal(string: "-1234.56")
    #expect(try decode(order: 1, [0x40, 0xE2, 0x01, 0x00]) == amount)
    #expect(try decode(order: 2, [0xE2, 0x40, 0x00, 0x01]) == amount)
    #expect(try decode(order: nil, [0x40, 0xE2, 0x01, 0x00]) == amount)
  }

  @Test("a dictionary that doesn't have as many values as keys is an error, and none of them is dropped silently")
  func unequalCounts() throws {
    for (keys, values) in [([.uid(3), .uid(4)], [.uid(5)]), ([.uid(3)], [.uid(5), .uid(5)])]
      as [([PropertyList], [PropertyList])]
    {
      let archive = try KeyedArchive(
        KeyedArchiveTests.archive([
          ["NS.keys": .array(keys), "NS.objects": .array(values), "$class": .uid(2)],
          KeyedArchiveTests.name("NSDictionary"), "gold", "gems", 5,
        ]))
      let tree = #expect(throws: PropertyListError.self) { try archive.tree() }
      #expect(tree?.code == .damaged)
      let decoded = #expect(throws: PropertyListError.self) { try archive.decode([String: Int].self) }
      #expect(decoded?.code == .damaged)
    }
  }
}
