public import Foundation

/// A store for a few small secrets, such as the system's keychain: where a game may keep what identifies this device at
/// its cloud, instead of in a file of the data's folder.
///
/// ```swift
/// struct VaultStore: CredentialStore {
///   func read(_ key: String) throws -> Data? { try vault.entry(named: key) }
///   func write(_ data: Data, for key: String) throws { try vault.set(data, named: key) }
///   func remove(_ key: String) throws { try vault.removeEntry(named: key) }
/// }
/// let game = try GameData.open("com.example.space", credentials: .store(VaultStore()))
/// ```
///
/// Keys are 32 hexadecimal digits, random and new for each secret, so that several games and accounts can share one
/// store. A copy of a folder reads the original's entries until it writes its own; it never changes or removes them.
/// Data is at most `CredentialStorage.maximumBytes` long. Each account has up to three entries: the
/// credentials of this device, those for banks of players that it has left, and recovery codes.
///
/// Calls come from any thread, and several may come at once. Most come from a background thread of the cloud;
/// those of `GameData.adopt`, `signOut`, `forget` and `deleteProfile` come from the caller's. They may wait for the
/// disk; sync waits for them, saving and playing don't. Don't ask the player from within one, never wait for the main
/// thread there, and never call this library.
///
/// **Errors.** Throw whatever says why, and throw rather than return nil if it isn't known whether there is an entry:
/// nil means that this device has lost its credentials and has to join again. After an error nothing is given up: the
/// game goes on offline, `CloudStatus` and an incident say why, and the call is made again later. Before a device
/// registers or joins, a few bytes are written under its new key, read back and removed, so that no player and no code
/// is lost to a store that fails.
public protocol CredentialStore: Sendable {
  /// Returns what was written under a key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The data; nil only if there certainly is none.
  /// - Throws: Any error, if it can't be read or isn't known.
  func read(_ key: String) throws -> Data?

  /// Writes data under a key, in place of what is there. Must be durable on return, and atomic: after an error or a
  /// power cut, `read` returns either all of the old data or all of the new.
  ///
  /// - Parameters:
  ///   - data: At most `CredentialStorage.maximumBytes`.
  ///   - key: The key.
  /// - Throws: Any error, if it can't be written.
  func write(_ data: Data, for key: String) throws

  /// Removes what is there under a key. Does nothing if there is nothing.
  ///
  /// - Parameter key: The key.
  /// - Throws: Any error, if it can't be removed.
  func remove(_ key: String) throws
}
