import Foundation
import KeepsakeStore
import KeepsakeSync

/// The file in which a game keeps the credentials from its cloud. Readable by the user only.
struct CloudFile: Sendable {
  struct Contents: Codable, Sendable {
    var credentials: CloudCredentials
    /// Whether these credentials are another player's, and the store isn't bound to that player's container yet.
    var isJoining = false
  }
  /// Enough for a token and a few names; a larger file isn't ours.
  private static let maximumBytes = 64 * 1024

  static let name = "cloud.json"

  let url: URL

  /// Returns nil if there is no file.
  func read() throws -> Contents? {
    guard let bytes = try AtomicFile.read(url, maximumBytes: Self.maximumBytes) else { return nil }
    do {
      return try JSONDecoder().decode(Contents.self, from: bytes)
    } catch {
      throw StoreError(.damaged, "the file \(url.path) can't be decoded: delete it to connect again", cause: error)
    }
  }

  func write(_ contents: Contents) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    try AtomicFile.write(encoder.encode(contents), to: url, access: .ownerOnly)
  }
}
