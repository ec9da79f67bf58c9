import Foundation

extension String {
  /// The one spelling of a name (Unicode's form NFC): two that look and compare alike, "é" as one character or as "e" with an accent, are
  /// one name on every device, whoever compares them by their bytes.
  package var canonical: String { utf8.allSatisfy { $0 < 0x80 } ? self : precomposedStringWithCanonicalMapping }
}
