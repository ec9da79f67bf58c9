#if Cloud
import Foundation

/// Points in time as text for people and programs.
enum TimeText {
  /// Four-digit years, which no player's clock exceeds; beyond them, the number itself is shown.
  private static let range = Int64(-62_135_596_800_000)...Int64(253_402_300_799_000)

  static func iso(milliseconds: Int64) -> String {
    guard range.contains(milliseconds) else { return "\(milliseconds) ms" }
    // Whole seconds only: in a fraction, a millisecond would be rounded down to the one before.
    let fraction = (milliseconds % 1_000 + 1_000) % 1_000
    let date = Date(timeIntervalSince1970: Double((milliseconds - fraction) / 1_000))
    return date.formatted(.iso8601).dropLast() + String(format: ".%03dZ", Int(fraction))
  }
}
#endif
