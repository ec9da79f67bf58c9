#if Cloud
import KeepsakeArchive
import KeepsakeReplication

/// Text from outside, made safe for a terminal.
enum Printable {
  /// Shows control characters and direction overrides as escapes, so that a name can't move the cursor or hide itself.
  static func text(_ text: String) -> String { PrintableText.escaped(text) }

  /// Returns a number of bytes in a suitable unit.
  static func size(_ bytes: Int64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    var value = Double(bytes)
    var unit = 0
    while abs(value) >= 1024, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    guard unit > 0 else { return CountText.of(bytes, "byte") }
    let tenths = Int64((value * 10).rounded())
    return "\(tenths / 10).\(abs(tenths % 10)) \(units[unit])"
  }

  /// Returns a time that was spent in its two largest units. What a clock can't have measured counts as nothing.
  static func duration(_ milliseconds: Double) -> String {
    let seconds = milliseconds.isFinite ? Int64(min(max(milliseconds / 1_000, 0), 1e12)) : 0
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60)
    if hours > 0 { return "\(hours) h \(minutes) min" }
    return minutes > 0 ? "\(minutes) min \(seconds % 60) s" : "\(seconds) s"
  }
}
#endif
