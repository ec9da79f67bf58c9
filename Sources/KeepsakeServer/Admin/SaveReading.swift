#if Cloud
package import Foundation

/// Reads saves for the admin API. The server itself stores frames as they come, and never opens one.
package protocol SaveReading: Sendable {
  /// Returns the plain bytes of a content's frame.
  ///
  /// - Parameters:
  ///   - base: The plain bytes of the content that it is a delta against.
  ///   - length: How many bytes it has to have.
  /// - Throws: `UnreadableSave` if the frame is damaged: devices send what they like.
  func plain(_ frame: Data, base: Data?, length: Int) throws -> Data
  /// Returns a save as JSON, with its types and values, as `keepsake inspect --json` prints it.
  ///
  /// - Throws: `UnreadableSave`.
  func json(_ save: Data) throws -> Data
  /// Returns what differs between two saves, as `keepsake diff --json` prints it.
  ///
  /// - Throws: `UnreadableSave`.
  func difference(from old: Data, to new: Data) throws -> Data
}

/// What a save may have that is shown, and not only sent.
package enum ShownSave {
  /// The most decoded bytes, also of what is in it: a server has other work than to show one save.
  package static let maximumBytes = 16 << 20
}

/// A save that can't be shown as JSON: of no known format, sealed by the game, or too large. Its bytes can be fetched.
package struct UnreadableSave: Error {
  package var message: String

  package init(_ message: String) { self.message = message }
}
#endif
