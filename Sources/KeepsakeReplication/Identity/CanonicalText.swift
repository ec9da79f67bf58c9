import Foundation

extension String {
  /// The canonical spelling of a name (Unicode's form NFC): two names that look and compare alike, with "é" as one
  /// character or as "e" with an accent, are the same name on every device, even when compared by bytes.
  package var canonical: String { utf8.allSatisfy { $0 < 0x80 } ? self : precomposedStringWithCanonicalMapping }
}
