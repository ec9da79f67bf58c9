import Foundation

/// The sanitizer that the tests were built for, which `Scripts/sanitize.sh` names.
package enum Sanitizer {
  /// Stack frames are many times as large, and freed memory isn't used again for long.
  package static let isAddress = name == "address"

  /// How many times the stack of an ordinary build is needed.
  package static let stackFactor = isAddress ? 8 : name == "thread" ? 2 : 1

  private static let name = ProcessInfo.processInfo.environment["KEEPSAKE_SANITIZER"]
}
