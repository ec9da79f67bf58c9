import Foundation
import KeepsakeStore
import KeepsakeSync

/// Where a game keeps what its cloud gave it to prove itself with. Readable by the user only.
struct CloudFile: Sendable {
  struct Contents: Codable, Sendable {
    var credentials: CloudCredentials
    /// These credentials are another player's, and the store has not yet been bound to that player's container.
    var isJoining = false
  }
  /// A token and a few names; anything larger isn't ours.
  private static let maximumBytes = 64 * 1024

  static let name = "cloud.json"

  let url: URL

  /// Nil if there is none.
  func read() throws -> Contents? {
    guard let bytes = try AtomicFile.read(url, maximumBytes: Self.maximumBytes) else { return nil }
    do {
      return try JSONDecoder().decode(Contents.self, from: bytes)
    } catch {
      throw StoreError(.damaged, "the file \(url.path) can't be understood: remove it to connect anew", cause: error)
    }
  }

  func write(_ contents: Contents) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    try AtomicFile.write(encoder.encode(contents), to: url, access: .ownerOnly)
  }
}
