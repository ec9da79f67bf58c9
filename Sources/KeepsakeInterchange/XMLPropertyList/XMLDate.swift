import Foundation

/// Dates in XML property lists: `2026-03-01T12:00:00Z`, in whole seconds, always in the Gregorian calendar.
enum XMLDate {
  private static let secondsPerDay = 86_400
  /// From 1970, from which days are counted, to 2001, from which dates are.
  private static let daysToReference = 11_323
  /// Includes the year before year 1, because Foundation's `distantPast` is 0000-12-30 in this calendar.
  private static let years = 0...9999

  /// Returns nil for text that isn't a date. Components at the end may be omitted, except for the Z, as in Python.
  static func date(_ text: String) -> Date? {
    // Without a regular expression, which would take longer than everything else in a file.
    var rest = text.utf8[...]
    guard rest.popLast() == UInt8(ascii: "Z"), let year = number(4, &rest) else { return nil }
    var parts = [1, 1, 0, 0, 0]
    for (place, mark) in "--T::".utf8.enumerated() where !rest.isEmpty {
      guard rest.popFirst() == mark, let part = number(2, &rest) else { return nil }
      parts[place] = part
    }
    guard rest.isEmpty else { return nil }
    let (month, day, hour, minute, second) = (parts[0], parts[1], parts[2], parts[3], parts[4])
    guard years.contains(year), (1...12).contains(month), (1...length(ofMonth: month, year)).contains(day), hour < 24,
      minute < 60,
      second < 60
    else { return nil }
    let days = days(year, month, day) - daysToReference
    return Date(timeIntervalSinceReferenceDate: Double(days * secondsPerDay + hour * 3600 + minute * 60 + second))
  }

  /// Reads a number with a fixed count of ASCII digits.
  private static func number(_ count: Int, _ rest: inout Substring.UTF8View) -> Int? {
    var number = 0
    for _ in 0..<count {
      guard let byte = rest.popFirst(), (0x30...0x39).contains(byte) else { return nil }
      number = number * 10 + Int(byte - 0x30)
    }
    return number
  }

  /// Returns nil for years that don't have four digits. Fractions of seconds are dropped.
  static func text(_ date: Date) -> String? {
    let seconds = date.timeIntervalSinceReferenceDate.rounded(.down)
    guard let whole = Int(exactly: seconds), whole.magnitude < UInt(years.upperBound * 366 * secondsPerDay) else {
      return nil
    }
    let day = whole.quotientAndRemainder(dividingBy: secondsPerDay)
    let rest = day.remainder < 0 ? day.remainder + secondsPerDay : day.remainder
    let (year, month, number) = civil(day.quotient - (day.remainder < 0 ? 1 : 0) + daysToReference)
    guard years.contains(year) else { return nil }
    func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let digits = String(repeating: "0", count: 4 - "\(year)".count) + "\(year)"
    return "\(digits)-\(two(month))-\(two(number))T\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60))Z"
  }

  private static func length(ofMonth month: Int, _ year: Int) -> Int {
    let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
    return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
  }

  /// Returns the days since 1970-01-01. Counts years from March, so that the leap day is the last day of a year.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let ofEra = year - era * 400
    let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
  }

  /// The inverse of `days`.
  private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let ofEra = shifted - era * 146_097
    let year = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
    let ofYear = ofEra - (365 * year + year / 4 - year / 100)
    let part = (5 * ofYear + 2) / 153
    let month = part < 10 ? part + 3 : part - 9
    return (year + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - (153 * part + 2) / 5 + 1)
  }
}
