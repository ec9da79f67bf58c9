#if os(Linux)
import Foundation
package import Testing

/// Small file systems that only one child process sees, so that nothing is left behind however that process ends.
package enum PrivateMounts {
  /// Runs a program in a mount namespace of its own, and waits for it.
  package static func run(_ command: [String], environment: [String: String] = [:]) throws -> ChildProcess.Ended {
    try ChildProcess.run(
      URL(fileURLWithPath: "/usr/bin/env"), ["unshare", "-m", "--propagation", "private"] + command,
      environment: environment)
  }

  /// Why private mounts aren't possible here; nil if they are.
  package static let obstacle: String? = {
    do {
      let ended = try run(["mount", "-t", "tmpfs", "-o", "size=1m", "keepsake", "/mnt"])
      return ended.status == 0 ? nil : "a process of its own can't mount a file system here: \(ended.errors)"
    } catch {
      return "unshare can't be started: \(error)"
    }
  }()
}

extension Trait where Self == ConditionTrait {
  /// Skips the test where a child process can't mount a file system.
  package static var needsPrivateMounts: Self {
    .enabled(if: PrivateMounts.obstacle == nil, "\(PrivateMounts.obstacle ?? "")")
  }
}
#endif
