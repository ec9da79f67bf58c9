#if Cloud
import Foundation
import KeepsakeReplication

/// Why a server can't start or continue.
package struct ServerError: Error, CustomStringConvertible {
  package enum Code: String, Sendable {
    /// Another server has locked the data folder.
    case folderInUse
    /// The data folder was written by a newer version; it was not touched.
    case newerData
    /// The disk or the file system refused something.
    case inputOutput
    /// Something in the data folder is not what the server wrote.
    case damaged
    /// The configuration can't be used as it is.
    case configuration
    /// Something that was named doesn't exist.
    case missing
    /// A file or folder is there, and can't be used as it is now.
    case unusableFile
    /// More work is waiting than the server accepts.
    case overloaded
  }
  package var code: Code
  /// A sentence that a person can act on.
  package var message: String
  package var cause: (any Error)?

  /// Whether the disk, or this user's share of it, is full. Everything works again once there is room.
  var isDiskFull: Bool {
    guard let cause = cause as? POSIXError else { return false }
    return cause.code == .ENOSPC || cause.code == .EDQUOT
  }

  package init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.cause = cause
  }

  package var description: String {
    cause.map { "\(message) (\(ErrorReason.text($0)))" } ?? message
  }
}
#endif
