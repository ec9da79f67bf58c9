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
}
#endif
