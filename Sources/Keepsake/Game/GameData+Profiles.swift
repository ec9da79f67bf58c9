package import Foundation
import KeepsakeStore

/// Profiles: several players on one device, each with a folder of its own.
extension GameData {
  /// Lists the profiles of a game that have data in the platform's folder. Opens none of them.
  ///
  /// ```swift
  /// for name in try GameData.profiles(of: "com.example.space") { ... }
  /// let game = try GameData.open("com.example.space", profile: "Ada")
  /// ```
  ///
  /// A profile is created when it is first opened. Data that was opened with `at:` isn't listed.
  ///
  /// - Parameter id: The game's identifier.
  /// - Returns: The names of the profiles, sorted.
  /// - Throws: `GameDataError` with `misuse` for an invalid identifier; `StoreError` if the folder can't be read.
  public static func profiles(of id: String) throws -> [String] { try profiles(in: StorageFolders(id).url(for: .data)) }

  /// Deletes a profile from this device, with its history, backups and money. This can't be undone. The cloud's copy
  /// stays.
  ///
  /// - Parameters:
  ///   - profile: The profile's name.
  ///   - id: The game's identifier.
  ///   - credentials: As it was passed at opening: what the profile has there is removed.
  /// - Throws: `StoreError` with `inUse` while the profile is open in any process, `missing` if there is none, or
  ///   `misuse` if its credentials are in a store that wasn't passed; `GameDataError` with `misuse` for an invalid
  ///   name. Nothing has changed then. If the credential store or the disk fails after that, the profile is gone, and
  ///   deleting another one with the same credentials does the rest.
  public static func deleteProfile(
    _ profile: String, of id: String, credentials: CredentialStorage = .folder
  ) throws {
    try deleteProfile(profile, in: StorageFolders(id).url(for: .data), credentials: credentials)
  }

  /// Lists the profiles in any folder, for tests.
  package static func profiles(in folder: URL) throws -> [String] {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return []
    } catch {
      throw StoreError(.io, "the profiles in \(folder.path) can't be listed", cause: error)
    }
    // A folder with an invalid name wasn't created by opening a profile.
    return names.filter { name in
      StorageFolders.isName(name) && StoreRemoval.isStore(folder.appendingPathComponent(name, isDirectory: true))
    }.sorted()
  }

  /// Deletes a profile in any folder, for tests.
  package static func deleteProfile(
    _ profile: String, in folder: URL, credentials: CredentialStorage = .folder
  ) throws {
    try StorageFolders.check(profile, "a profile's name")
    let url = folder.appendingPathComponent(profile, isDirectory: true)
    guard StoreRemoval.isStore(url) else { throw StoreError(.missing, "there is no profile \"\(profile)\"") }
    try credentials.deleteStore(at: url)
  }
}
