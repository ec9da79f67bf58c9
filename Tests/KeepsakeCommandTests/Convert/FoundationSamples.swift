#if Cloud && !canImport(Darwin)
import Foundation
import KeepsakeInterchange
import Testing

/// Values that Foundation's archiver writes on this platform, each of another class or with other fields.
struct FoundationSample: CustomTestStringConvertible, Sendable {
  var name: String
  /// Whether `isEqual` compares contents; otherwise only what is archived of two values tells if they are the same.
  var hasEquality = true
  var make: @Sendable () throws -> NSObject

  var testDescription: String { name }

  init(_ name: String, hasEquality: Bool = true, _ make: @escaping @Sendable () throws -> NSObject) {
    (self.name, self.hasEquality, self.make) = (name, hasEquality, make)
  }

  /// As Foundation's archiver writes a value.
  static func archived(_ value: Any) throws -> PropertyList {
    try PropertyList(NSKeyedArchiver.archivedData(withRootObject: value, requiringSecureCoding: false))
  }

  static let all = collections + values + shapes + texts + others

  private static let collections = [
    FoundationSample("NSArray") { NSArray(array: ["a", 1, 2.5, NSNull()]) },
    .init("NSArray, empty") { NSArray() },
    .init("NSMutableArray") { NSMutableArray(array: ["a", NSMutableArray(array: ["b"])]) },
    .init("NSDictionary") { NSDictionary(dictionary: ["a": 1, "b": NSArray(array: ["c"])]) },
    .init("NSDictionary by numbers") { NSDictionary(dictionary: [1: "a", 2: "b"]) },
    .init("NSMutableDictionary") { NSMutableDictionary(dictionary: ["a": NSMutableSet(array: ["b"])]) },
    .init("NSSet") { NSSet(array: ["a"]) },
    .init("NSMutableSet") { NSMutableSet(array: [NSDate(timeIntervalSinceReferenceDate: 1)]) },
    .init("NSCountedSet") { NSCountedSet(array: ["a", "a"]) },
    .init("NSOrderedSet") { NSOrderedSet(array: ["b", "a"]) },
    .init("NSMutableOrderedSet") { NSMutableOrderedSet(array: ["b", "a"]) },
    .init("NSIndexPath, empty") { NSIndexPath() },
    .init("NSIndexPath") { NSIndexPath(index: 3) },
    .init("NSIndexPath of three") { IndexPath(indexes: [1, 300, 70_000]) as NSIndexPath },
    .init("NSIndexSet, empty") { NSIndexSet() },
    .init("NSIndexSet") { NSIndexSet(indexesIn: NSRange(location: 2, length: 4)) },
    .init("NSMutableIndexSet") {
      let set = NSMutableIndexSet(index: 1)
      set.add(in: NSRange(location: 1_000, length: 7))
      return set
    },
  ]

  private static let values = [
    FoundationSample("NSData") { NSData(data: Data([1, 2, 3])) },
    .init("NSMutableData") { NSMutableData(data: Data([1, 2, 3])) },
    .init("NSDate") { NSDate(timeIntervalSinceReferenceDate: 700_000_000.25) },
    .init("NSDate, before") { NSDate(timeIntervalSinceReferenceDate: -0.0) },
    .init("NSDate, far") { NSDate(timeIntervalSinceReferenceDate: 1e300) },
    .init("NSNumber, integer") { NSNumber(value: Int.min) },
    .init("NSNumber, unsigned") { NSNumber(value: UInt64.max) },
    .init("NSNumber, flag") { NSNumber(value: true) },
    .init("NSNumber, double") { NSNumber(value: -0.0) },
    .init("NSNumber, infinite") { NSNumber(value: -Double.infinity) },
    .init("NSNumber, float") { NSNumber(value: Float(0.1)) },
    .init("NSUUID") { NSUUID() },
    .init("NSURL") { try value(NSURL(string: "https://example.com/a?b#c")) },
    .init("NSURL with a base") { try value(NSURL(string: "b/c", relativeTo: URL(string: "https://example.com/a/"))) },
    .init("NSURL of a file") { NSURL(fileURLWithPath: "/a/b") },
    .init("NSURLQueryItem") { NSURLQueryItem(name: "a", value: "b") },
    .init("NSNull") { NSNull() },
  ]

  private static let shapes = [
    FoundationSample("NSValue, range") { NSValue(range: NSRange(location: 1, length: 2)) },
    .init("NSValue, point") { NSValue(point: NSPoint(x: 1, y: 2)) },
    .init("NSValue, size") { NSValue(size: NSSize(width: 1, height: 2)) },
    .init("NSValue, rectangle") { NSValue(rect: NSRect(x: 1, y: 2, width: 3, height: 4)) },
    .init("NSValue, insets") { NSValue(edgeInsets: NSEdgeInsets(top: 1, left: 2, bottom: 3, right: 4)) },
    .init("NSValue of another type") {
      var number: Int32 = 5
      return NSValue(bytes: &number, objCType: "i")
    },
    .init("NSAffineTransform") {
      let transform = NSAffineTransform()
      transform.scale(by: 2)
      return transform
    },
  ]

  private static let texts = [
    FoundationSample("NSString") { NSString(string: "Ünal 👑") },
    .init("NSMutableString") { NSMutableString(string: "x") },
    .init("NSAttributedString, plain") { NSAttributedString(string: "abc") },
    .init("NSAttributedString") { NSAttributedString(string: "abc", attributes: [.init("level"): NSNumber(value: 1)]) },
    .init("NSMutableAttributedString") {
      let text = NSMutableAttributedString(string: "abc def")
      text.addAttribute(.init("quality"), value: NSString("rare"), range: NSRange(location: 0, length: 3))
      return text
    },
    .init("NSCharacterSet") { NSCharacterSet(charactersIn: "abc") },
    .init("NSMutableCharacterSet") { NSMutableCharacterSet() },
    .init("NSRegularExpression") { try NSRegularExpression(pattern: "a+", options: [.caseInsensitive]) },
    .init("NSTextCheckingResult", hasEquality: false) {
      try value(
        NSRegularExpression(pattern: "a+").firstMatch(in: "xaa", range: NSRange(location: 0, length: 3)))
    },
  ]

  private static let others = [
    FoundationSample("NSMeasurement") { NSMeasurement(doubleValue: 3, unit: UnitLength.miles) },
    .init("Unit") { Unit(symbol: "x") },
    .init("UnitFuelEfficiency") { UnitFuelEfficiency.milesPerGallon },
    .init("NSLocale") { NSLocale(localeIdentifier: "de_DE") },
    .init("NSTimeZone") { try value(NSTimeZone(name: "Europe/Berlin")) },
    .init("NSCalendar") { try value(NSCalendar(identifier: .gregorian)) },
    .init("NSDateComponents") { DateComponents(timeZone: TimeZone(identifier: "UTC"), year: 2024) as NSDateComponents },
    .init("NSDateInterval", hasEquality: false) {
      NSDateInterval(start: Date(timeIntervalSinceReferenceDate: 0), duration: 5)
    },
    .init("NSPersonNameComponents") {
      var name = PersonNameComponents()
      (name.givenName, name.familyName) = ("Ada", "Lovelace")
      return name as NSPersonNameComponents
    },
    .init("ISO8601DateFormatter", hasEquality: false) { ISO8601DateFormatter() },
    .init("DateIntervalFormatter", hasEquality: false) { DateIntervalFormatter() },
  ]

  private static func value<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw CocoaError(.featureUnsupported) }
    return value
  }

  /// Classes that the library knows, and that Foundation's archiver doesn't write on this platform, each with the
  /// reason.
  static let unwritten = [
    "NSString": "a text is written as itself", "NSMutableString": "a text is written as itself",
    "NSData": "data is written as itself", "NSNumber": "a number is written as itself",
    "NSDecimalNumber": "archiving one recurses until the process ends",
    "NSDecimalNumberPlaceholder": "it is what Apple's Foundation calls an NSDecimalNumber that it archives",
    "NSColor": "it belongs to AppKit", "UIColor": "it belongs to UIKit",
  ]

  /// What else Foundation's archiver can't write on this platform: each of them ends the process.
  static let unarchivable = ["NSError", "NSNotification", "NSPredicate", "NSURLComponents"]

  /// The fields of those of them that are written nevertheless, as Apple's archiver writes them.
  static let fieldsOfUnwritten: [String: Set<String>] = [
    "NSString": ["NS.string"],
    "NSDecimalNumber": [
      "NS.exponent", "NS.length", "NS.negative", "NS.compact", "NS.mantissa.bo", "NS.mantissa",
    ],
  ]
}
#endif
