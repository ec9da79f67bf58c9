import SwiftSyntax

/// Finds keys that can't be told apart: fields and cases are found in archives by their keys.
struct KeyCheck {
  private var names: [String: String] = [:]

  /// Adds a field or case.
  ///
  /// - Returns: The error, if another one has the same key.
  mutating func add(_ name: String, key: String) -> ArchivableDiagnostic? {
    if let other = names[key] { return .duplicateKey(name, key, other) }
    names[key] = name
    return nil
  }

  /// Returns what is wrong with the argument of `@Key`, if anything.
  static func problem(_ key: String?) -> ArchivableDiagnostic? {
    guard let key else { return .badKey }
    guard let first = key.first, let last = key.last else { return .emptyKey }
    let isSeen = key.unicodeScalars.allSatisfy(isVisible) && !first.isWhitespace && !last.isWhitespace
    return isSeen ? nil : .invisibleKey(key)
  }

  private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .surrogate: false
    // Two of these join letters, and the parts of pictures.
    case .format: scalar == "\u{200C}" || scalar == "\u{200D}"
    default: true
    }
  }
}
