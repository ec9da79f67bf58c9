import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// The file in which a game keeps the credentials from its cloud, or the key with which they are in a credential store.
struct CloudFile: Sendable {
  struct Contents: Codable, Sendable {
    var credentials: CloudCredentials
    /// Whether these credentials are another player's, and the store isn't bound to that player's container yet.
    var isJoining = false
    /// The device with which this one signs in after it was removed.
    var standIn: CloudCredentials?
    /// Of a device in a shared container: the game's own device that asked for it.
    var parent: DeviceID?
  }
  /// What is known of this device.
  enum State: Sendable {
    /// It has never been registered, as far as the file shows.
    case none
    /// It was registered, and its credentials are gone, or have become another device's.
    case lost
    case known(Contents)
  }

  static let name = "cloud.json"

  private let file: SecretFile

  /// - Parameter store: The store, if it is open.
  init(in folder: URL, of store: Store?, _ credentials: CredentialStorage) {
    file = SecretFile(
      Self.name, in: folder, of: store, credentials,
      owner: { bytes in
        (try? JSONDecoder().decode(Contents.self, from: bytes)).map {
          SecretFile.Owner(device: $0.credentials.device.description, isJoining: $0.isJoining)
        }
      })
  }

  func state() throws -> State {
    switch try file.read() {
    case .nothing: return .none
    case .lost: return .lost
    case .bytes(let bytes, let joining):
      do {
        var contents = try JSONDecoder().decode(Contents.self, from: bytes)
        // A folder that was copied while it joined has to complete that, too: the entry says it for one of them only.
        if joining == contents.credentials.device.description { contents.isJoining = true }
        return .known(contents)
      } catch {
        throw StoreError(
          .damaged, "the file \(file.url.path) can't be decoded: delete it, and join the player again", cause: error)
      }
    }
  }

  /// Returns nil if there are no credentials, or they are gone.
  func read() throws -> Contents? { if case .known(let contents) = try state() { contents } else { nil } }

  func write(_ contents: Contents) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    try file.write(encoder.encode(contents))
  }

  /// Makes sure that credentials can be stored, before a server is asked for them.
  func prepare() throws {
    // What can't be decoded isn't replaced.
    _ = try state()
    try file.prepare()
  }

  /// Moves the credentials into the credential store, if they belong there.
  func move() throws { try file.move() }
}
