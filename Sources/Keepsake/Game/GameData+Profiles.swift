package import Foundation
import KeepsakeStore

/// Several players of one device: each profile is a folder of its own, with saves, values and money of its own.
extension GameData {
  /// The profiles of the game `id` that have data in the platform's folder, sorted by name.
  ///
  ///     for name in try GameData.profiles(of: "com.example.space") { ... }
  ///     let game = try GameData.open("com.example.space", profile: "Ada")
  ///
  /// Opens none of them. A profile begins when it is first opened; data that was opened with `at:` is the game's own to list. Throws
  /// `GameDataError` with `misuse` for an identifier that can't be, and `StoreError` if the folder can't be read.
  public static func profiles(of id: String) throws -> [String] { try profiles(in: StorageFolders(id).url(for: .data)) }

  /// Deletes a profile from this device, with its history, its backups and its money, for good.
  ///
  /// What the cloud has of it stays there. Throws `StoreError` with nothing changed: `inUse` while the profile is open, here or in
  /// another process, `missing` if there is none; `GameDataError` with `misuse` for a name that can't be.
  public static func deleteProfile(_ profile: String, of id: String) throws {
    try deleteProfile(profile, in: StorageFolders(id).url(for: .data))
  }

  /// The same in any folder, for tests.
  package static func profiles(in folder: URL) throws -> [String] {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return []
    } catch {
      throw StoreError(.io, "the profiles in \(folder.path) can't be listed", cause: error)
    }
    // What has no proper name was never made by opening a profile.
    return names.filter { name in
      StorageFolders.isName(name) && StoreRemoval.isStore(folder.appendingPathComponent(name, isDirectory: true))
    }.sorted()
  }

  /// The same in any folder, for tests.
  package static func deleteProfile(_ profile: String, in folder: URL) throws {
    try StorageFolders.check(profile, "a profile's name")
    let url = folder.appendingPathComponent(profile, isDirectory: true)
    guard StoreRemoval.isStore(url) else { throw StoreError(.missing, "there is no profile \"\(profile)\"") }
    try StoreRemoval.remove(url)
  }
}
