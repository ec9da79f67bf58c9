public import Foundation
import KeepsakeStore

extension GameData {
  /// Gives the data in a folder to a game with another identifier, after the game's identifier was changed.
  ///
  /// ```swift
  /// try GameData.rename("com.example.space", to: "com.example.space2", at: folder)
  /// let game = try GameData.open("com.example.space2", at: folder)
  /// ```
  ///
  /// For data that is opened with `at:`. Without it, the identifier also names the folder: move that, and then rename
  /// the data in each profile's folder. Data with a seal can't be renamed, because the seal is bound to the identifier.
  ///
  /// Durable on return. The data must not be open.
  ///
  /// - Parameters:
  ///   - id: The identifier that the data has now.
  ///   - newID: The identifier that it gets.
  ///   - url: The folder.
  /// - Throws: `GameDataError` with `otherGame` if the data belongs to neither, or `misuse` for an invalid identifier;
  ///   `StoreError` with `missing` if there is no data, `inUse` if it is open, `otherSeal` if it has a seal, or another
  ///   code if it can't be read or written. Nothing has changed then.
  public static func rename(_ id: String, to newID: String, at url: URL) throws {
    try StorageFolders.check(id, "a game's identifier")
    try StorageFolders.check(newID, "a game's identifier")
    guard StoreRemoval.isStore(url) else {
      throw StoreError(.missing, "the folder \(url.path) contains no game's data")
    }
    let store = try Store.open(at: url)
    do {
      try StoreGame.move(store, from: id, to: newID)
    } catch {
      try? store.close()  // The reason to give up is the error that is thrown.
      throw error
    }
    try store.close()
  }
}
