/// Where a device keeps what identifies it at its cloud: in the folder of the data, or in a store for secrets.
///
/// ```swift
/// let game = try GameData.open("com.example.space", credentials: .store(KeychainStore()))
/// ```
///
/// It concerns the token of this device with its player, those for banks of players that it has left, and recovery
/// codes. Everything else stays in the folder.
///
/// With a store, the folder has only a reference. A folder that is restored or copied to another machine then brings no
/// token along: the device is `refused` there until it joins the player (`Cloud.join`, `recover` or `signIn`), and
/// never becomes another player by itself. Everything on it stays. A copy on the same machine is the same device as the
/// original until one of them joins another player: then the copy is `refused`, too, unless it was the one that joined.
///
/// Choose a store before the first release, or later: what is in the folder is moved when the game next connects. Pass
/// the same one at each opening. A game that goes back, or to another store, names the one before:
///
/// ```swift
/// let game = try GameData.open("com.example.space", credentials: .folder.moving(from: VaultStore()))
/// ```
public struct CredentialStorage: Sendable {
  /// The length of the longest data that a credential store gets, in bytes: enough for any token and some hundred
  /// former players, and little enough for any system's store.
  public static let maximumBytes = 64 * 1024

  /// Nil if it is in the folder.
  let current: (any CredentialStore)?
  let former: [any CredentialStore]

  /// In the folder, in files that only the user can read (mode 0600).
  ///
  /// The default on every platform. A backup of the device contains the folder, so a device that is set up from one
  /// continues as the same device of the player, which is safe (see `StorageFolders`). But a thief of the backup
  /// can use the token as well: if that matters more, choose a store, and offer the player a way back.
  public static let folder = CredentialStorage(current: nil, former: [])

  /// In a store: `KeychainStore` on Apple's platforms, `DataProtectionStore` on Windows, or the game's own.
  ///
  /// - Parameter store: The store.
  /// - Returns: The storage.
  public static func store(_ store: any CredentialStore) -> CredentialStorage {
    CredentialStorage(current: store, former: [])
  }

  /// Also looks in a store that the game used before, and moves what is there.
  ///
  /// Can be repeated for several. What is in the current store counts. If the store before can't remove what was moved,
  /// an incident says so; into another store, it is tried again at each connection.
  ///
  /// - Parameter former: The store before.
  /// - Returns: The storage.
  public func moving(from former: any CredentialStore) -> CredentialStorage {
    CredentialStorage(current: current, former: self.former + [former])
  }

  var all: [any CredentialStore] { (current.map { [$0] } ?? []) + former }
}
