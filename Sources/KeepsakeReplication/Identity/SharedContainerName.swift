/// The names by which games ask for the containers that they share: on each device it is also a folder's name.
package enum SharedContainerName {
  private static let maximumLength = 64

  /// Returns a sentence with the rule and this name; nil if it is allowed.
  package static func objection(to name: String) -> String? {
    let isValid =
      (1...maximumLength).contains(name.utf8.count) && name.utf8.allSatisfy(isAllowed)
      && name.first != "." && name.first != "-" && name.last != "." && !WindowsName.isDevice(name)
    return isValid
      ? nil
      : """
      the name of a shared container has 1 to \(maximumLength) of the characters a-z, 0-9, . and -, begins with a \
      letter or digit, doesn't end with a dot, and isn't that of a device such as con: \(NameRule.shown(name)) isn't
      """
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
  }
}
