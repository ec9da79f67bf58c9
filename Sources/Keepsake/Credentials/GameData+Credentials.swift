public import Foundation
import KeepsakeStore

extension GameData {
  /// Removes the credentials of a folder from their store: before the game deletes a folder that was opened with `at:`.
  ///
  /// ```swift
  /// try game.close()
  /// try GameData.removeCredentials(at: folder, from: .store(KeychainStore()))
  /// try FileManager.default.removeItem(at: folder)
  /// ```
  ///
  /// `signOut(forgetting:)`, `forget`, `deleteProfile` and `adopt` with `emptying` do this themselves for what they
  /// delete. Does nothing for credentials that are in the folder. If the folder is a copy, or was restored from a
  /// backup, and hasn't stored anything since, its entries may be another folder's: they stay. So does an entry whose
  /// reference in the folder can't be read. The data must not be open; if it is used again, this device has to join its
  /// player.
  ///
  /// - Parameters:
  ///   - url: The folder.
  ///   - credentials: As it was passed at opening.
  /// - Throws: `StoreError` if the store fails, or with `misuse` if the folder's credentials are in a store and none
  ///   was passed.
  public static func removeCredentials(at url: URL, from credentials: CredentialStorage) throws {
    let files = try credentials.filesOfAll(in: url)
    for file in files { try file.requireStore() }
    for file in files { try file.removeEntry() }
  }
}

extension CredentialStorage {
  /// The files of a store's folder that contain secrets, or refer to them.
  func files(in folder: URL) -> [SecretFile] {
    [CloudFile.name, FormerClouds.name, RecoveryFile.name].map {
      SecretFile($0, in: folder, of: nil, self, maximumBytes: FormerClouds.maximumBytes)
    }
  }

  /// The files of a store's folder, and of the shared data in it, that contain secrets, or refer to them.
  func filesOfAll(in folder: URL) throws -> [SecretFile] {
    try files(in: folder) + SharedFolder.names(in: folder).flatMap { files(in: SharedFolder.url(of: $0, in: folder)) }
  }

  /// Deletes a store's folder with the shared data in it, and their entries here.
  ///
  /// The entries are removed once the folder is certain to be deleted, and before their keys are.
  func deleteStore(at url: URL) throws {
    for file in try filesOfAll(in: url) { try file.requireStore() }
    try StoreRemoval.remove(url) { removed in for file in try filesOfAll(in: removed) { try file.removeEntry() } }
  }
}
