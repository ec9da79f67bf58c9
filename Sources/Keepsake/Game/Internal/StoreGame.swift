import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The identifier of the game that a store belongs to, stored with the data.
enum StoreGame {
  private static let factName = "game"

  /// Checks that a store belongs to a game. One that belongs to none yet is given to it: data from before identifiers
  /// were stored belongs to the first game that opens it.
  ///
  /// - Throws: `GameDataError` with `otherGame`; `StoreError` if the store can't be read or written.
  static func claim(_ store: Store, for game: String) throws {
    if let owner = try owner(of: store) {
      guard owner.canonical == game.canonical else { throw otherGame(owner, game, store.url) }
      return
    }
    do {
      try store.write { try $0.setFact(factName, game) }
    } catch let error as StoreError where error.code == .diskFull {
      // The data can be loaded all the same; the next opening stores it.
    }
  }

  /// Gives a store to another game.
  ///
  /// - Throws: As `claim`, with nothing changed.
  static func move(_ store: Store, from game: String, to other: String) throws {
    let owner = try owner(of: store)
    if owner?.canonical == other.canonical { return }
    if let owner, owner.canonical != game.canonical { throw otherGame(owner, game, store.url) }
    try store.write { try $0.setFact(factName, other) }
  }

  private static func owner(of store: Store) throws -> String? { try store.read { try $0.fact(factName) } }

  private static func otherGame(_ owner: String, _ game: String, _ url: URL) -> GameDataError {
    GameDataError(
      .otherGame(owner),
      """
      the data in \(url.path) belongs to the game "\(owner)", and not to "\(game)": give each game a folder of its \
      own, or call GameData.rename if the game's identifier has changed
      """)
  }
}
