#if Cloud
import Foundation
import KeepsakeReplication

/// Why a backup of a cloud can't be made, verified or restored.
package struct BackupError: Error, CustomStringConvertible {
  package enum Code: String, Sendable {
    /// The file isn't a backup of a cloud.
    case notBackup
    /// The file is a backup that was cut or altered, or that lacks something.
    case damaged
    /// The file was written by a newer version.
    case newerFormat
    /// There is a file already where the backup should be written.
    case exists
    /// There is something in the folder into which a backup should be restored.
    case notEmpty
    /// Another process is doing the same.
    case inUse
    /// Contents were removed faster than they could be copied.
    case unsettled
    /// The caller ended it.
    case stopped
    /// The disk or the file system refused something.
    case inputOutput
  }
  package var code: Code
  /// A sentence that a person can act on.
  package var message: String
  package var cause: (any Error)?

  init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    (self.code, self.message, self.cause) = (code, message, cause)
  }

  package var description: String {
    cause.map { "\(message) (\(ErrorReason.text($0)))" } ?? message
  }
}

/// How far a backup, or a restore, has come.
package struct BackupProgress: Sendable, Hashable {
  package enum Step: String, Sendable {
    /// Large contents are copied into the backup.
    case contents
    /// The database is copied.
    case database
    /// The backup is written to the disk, and read again.
    case verifying
    /// The backup's files are written into the data folder.
    case restoring
  }
  package var step: Step
  package var doneBytes: Int64
  /// Nil while it isn't known.
  package var totalBytes: Int64?

  /// Receives the progress, often. What it throws ends the work, which then leaves nothing behind.
  package typealias Receiver = (BackupProgress) throws -> Void
}
#endif
