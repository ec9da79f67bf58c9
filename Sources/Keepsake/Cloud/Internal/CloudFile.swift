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

  private let url: URL
  /// The open store in the same folder: the file belongs to it only while the folder does.
  private let store: Store?

  /// - Parameter store: The store, if it is open.
  init(in folder: URL, of store: Store?) { (url, self.store) = (folder.appendingPathComponent(Self.name), store) }

  /// Returns nil if there is no file.
  func read() throws -> Contents? {
    try store?.requirePresence()
    guard let bytes = try AtomicFile.read(url, maximumBytes: Self.maximumBytes) else { return nil }
    do {
      return try JSONDecoder().decode(Contents.self, from: bytes)
    } catch {
      throw StoreError(.damaged, "the file \(url.path) can't be decoded: delete it to connect again", cause: error)
    }
  }

  func write(_ contents: Contents) throws {
    try store?.requirePresence()
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    try AtomicFile.write(encoder.encode(contents), to: url, access: .ownerOnly)
  }
}
