#if canImport(Security)
public import Foundation
import KeepsakeStore
import Security

/// The keychain of Apple's platforms: for this device only and in no backup, or synced with the player's other devices.
///
/// ```swift
/// let game = try GameData.open("com.example.space", credentials: .store(KeychainStore()))
/// ```
///
/// Entries can be read once the device has been unlocked after a start. The app needs a signature: on the Mac, a
/// program without one gets an error (`errSecMissingEntitlement`).
///
/// The system keeps the entries of an app that was deleted. Nothing finds them again, since the key was in the folder.
public struct KeychainStore: CredentialStore {
  private let service: String
  private let accessGroup: String?
  private let isSynced: Bool

  /// Describes entries of the keychain. Doesn't create any.
  ///
  /// - Parameters:
  ///   - service: The name of the service under which all entries are.
  ///   - accessGroup: The group of apps that share the entries; the app's own if nil.
  ///   - isSynced: Whether iCloud Keychain brings the entries to the player's other devices, and they are in backups.
  ///     Then a device that is restored from a backup continues as the one before. Both have the same token: as with a
  ///     copied folder, nothing counts twice. The restored one gets an entry of its own at the next new token; the one
  ///     before stays until the device before removes it.
  public init(service: String = "keepsake", accessGroup: String? = nil, isSynced: Bool = false) {
    (self.service, self.accessGroup, self.isSynced) = (service, accessGroup, isSynced)
  }

  public func read(_ key: String) throws -> Data? {
    var query = query(key)
    query[kSecReturnData as String] = true
    query[kSecMatchLimit as String] = kSecMatchLimitOne
    var result: CFTypeRef?
    let status = SecItemCopyMatching(query as CFDictionary, &result)
    if status == errSecItemNotFound { return nil }
    guard status == errSecSuccess else { throw Self.error(status, "reading") }
    guard let data = result as? Data else { throw StoreError(.io, "the keychain returned an entry without data") }
    return data
  }

  public func write(_ data: Data, for key: String) throws {
    let change = [kSecValueData as String: data] as CFDictionary
    var status = SecItemUpdate(query(key) as CFDictionary, change)
    if status == errSecItemNotFound {
      var item = query(key)
      item[kSecValueData as String] = data
      item[kSecAttrAccessible as String] =
        isSynced ? kSecAttrAccessibleAfterFirstUnlock : kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
      status = SecItemAdd(item as CFDictionary, nil)
      // It came from another device, or was written by another app of the group, meanwhile.
      if status == errSecDuplicateItem { status = SecItemUpdate(query(key) as CFDictionary, change) }
    }
    guard status == errSecSuccess else { throw Self.error(status, "writing") }
  }

  public func remove(_ key: String) throws {
    let status = SecItemDelete(query(key) as CFDictionary)
    guard status == errSecSuccess || status == errSecItemNotFound else { throw Self.error(status, "deleting") }
  }

  private func query(_ key: String) -> [String: Any] {
    var query: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: service,
      kSecAttrAccount as String: key,
      kSecAttrSynchronizable as String: isSynced,
      // On the Mac, too: the older keychain there is a file that asks the user, and is in backups.
      kSecUseDataProtectionKeychain as String: true,
    ]
    if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
    return query
  }

  private static func error(_ status: OSStatus, _ doing: String) -> StoreError {
    let reason = SecCopyErrorMessageString(status, nil).map { $0 as String } ?? "unknown error"
    let isLocked = [errSecInteractionNotAllowed, errSecMissingEntitlement, errSecAuthFailed].contains(status)
    return StoreError(isLocked ? .notPermitted : .io, "\(doing) an entry of the keychain failed: \(reason) (\(status))")
  }
}
#endif
