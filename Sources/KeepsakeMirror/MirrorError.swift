import Foundation

/// Why a file of the mirrored folder, or the folder itself, could not be read, written or kept.
package struct MirrorError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Code: String, Hashable, Sendable, Codable {
    /// The mirrored folder doesn't exist, or another one has replaced it.
    case folder
    /// The file system refused an operation.
    case io
    /// The path, or something on the way to it, isn't a plain file in plain folders.
    case blocked
    /// The file is larger than one content may be.
    case tooLarge
    /// The folder contains more than can be mirrored.
    case tooMany
    /// The mirror's own table is from a newer version.
    case newer
    /// A content that should be here is missing or damaged.
    case content
  }
  package var code: Code
  /// A sentence that a person can act on.
  package var message: String
  package var path: String?
  /// The system's error number, if that was the cause.
  package var errorNumber: Int32?

  package init(_ code: Code, _ message: String, path: String? = nil, errorNumber: Int32? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.errorNumber = errorNumber
  }

  /// The system refused to `action`.
  static func system(_ action: String, _ number: Int32, path: String? = nil) -> MirrorError {
    MirrorError(.io, "could not \(action): \(String(cString: strerror(number)))", path: path, errorNumber: number)
  }

  package var description: String {
    path.map { "\($0): \(message)" } ?? message
  }
}
