import Foundation

/// The sanitizer that the tests were built for, which `Scripts/sanitize.sh` names.
package enum Sanitizer {
  /// Stack frames are many times as large, and freed memory isn't used again for long.
  package static let isAddress = ProcessInfo.processInfo.environment["KEEPSAKE_SANITIZER"] == "address"
}
