/// What Windows doesn't allow in the name of a file or folder.
package enum WindowsName {
  /// Characters that no name may contain.
  package static let reservedCharacters: Set<Unicode.Scalar> = ["/", "\\", ":", "*", "?", "\"", "<", ">", "|"]

  private static let devices: Set<String> = {
    // Windows treats the superscript digits as digits here.
    let digits = (0...9).map(String.init) + ["\u{B9}", "\u{B2}", "\u{B3}"]
    return Set(["con", "prn", "aux", "nul", "conin$", "conout$"] + digits.flatMap { ["com\($0)", "lpt\($0)"] })
  }()

  /// Returns whether a name stands for a device, whatever follows the first dot, and even with spaces before it.
  package static func isDevice(_ name: String) -> Bool {
    var stem = name.prefix { $0 != "." }.lowercased()
    while stem.last == " " { stem.removeLast() }
    return devices.contains(stem)
  }
}
