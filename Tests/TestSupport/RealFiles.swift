package import Foundation
package import Testing

/// Real files of other programs and of games, which not every machine has.
package enum RealFiles {
  /// Their location, if the environment names a folder.
  package static let folder = ProcessInfo.processInfo.environment["KEEPSAKE_CORPUS"].map { URL(filePath: $0) }
}

extension Trait where Self == ConditionTrait {
  /// Skips the test if there are no real files.
  package static var needsRealFiles: Self {
    .enabled(if: RealFiles.folder != nil, "KEEPSAKE_CORPUS doesn't name a folder of real files")
  }
}
