import Foundation

/// The names of numbered rows among the facts: a word and a number, padded to the same number of digits, so that names
/// sort like the numbers.
struct FactNames: Sendable {
  private static let digits = 12

  /// The names of all rows are between these two.
  let first: String
  let last: String
  /// The numbers that a row can have.
  let numbers: ClosedRange<Int64>

  init(_ word: String, numbers: ClosedRange<Int64>) {
    (first, last, self.numbers) = ("\(word) ", "\(word) :", numbers)
  }

  func name(of number: Int64) -> String {
    let digits = String(number)
    return first + String(repeating: "0", count: max(Self.digits - digits.count, 0)) + digits
  }

  /// Returns the number of the row of that name; nil for a name that no row has.
  func number(named name: String) -> Int64? {
    guard let number = Int64(name.dropFirst(first.count)), numbers.contains(number), self.name(of: number) == name
    else { return nil }
    return number
  }
}
