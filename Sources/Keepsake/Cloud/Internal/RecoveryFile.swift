import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The file in which a device keeps the use of a recovery code until the game has the code that takes its place: if
/// the response is lost, the same request is made again. Readable by the user only.
struct RecoveryFile: Sendable {
  private struct Contents: Codable {
    /// The digest of the code that is being used.
    var used: String
    var next: String
  }
  private static let maximumBytes = 4 * 1024

  private let url: URL
  private let store: Store

  init(in folder: URL, of store: Store) { (url, self.store) = (folder.appendingPathComponent("recovery.json"), store) }

  /// Returns the code that takes the place of this one: the same again for the same code.
  func next(after code: RecoveryCode) throws -> RecoveryCode {
    if let kept = try read(), kept.used == code.digest.description, let next = try? RecoveryCode(typed: kept.next) {
      return next
    }
    var source = SystemRandomNumberGenerator()
    let next = RecoveryCode(using: &source)
    try store.requirePresence()
    let contents = Contents(used: code.digest.description, next: next.text)
    try AtomicFile.write(JSONEncoder().encode(contents), to: url, access: .ownerOnly)
    return next
  }

  /// Whether a code may be in force that the game doesn't have.
  func isPending() throws -> Bool { try read() != nil }

  /// Forgets the use of a code.
  func remove() throws {
    try store.requirePresence()
    if FileManager.default.fileExists(atPath: url.path) { try FileManager.default.removeItem(at: url) }
  }

  /// Returns nil if there is no file, or none that can be read: it serves only to repeat a request.
  private func read() throws -> Contents? {
    try store.requirePresence()
    guard let bytes = try AtomicFile.read(url, maximumBytes: Self.maximumBytes) else { return nil }
    return try? JSONDecoder().decode(Contents.self, from: bytes)
  }
}
