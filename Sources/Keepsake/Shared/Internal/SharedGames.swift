import Synchronization

/// The data of shared containers that a game has open.
final class SharedGames: Sendable {
  private struct State {
    var open: [String: GameData] = [:]
    var isClosed = false
  }
  private let state = Mutex(State())

  /// Returns the open data of a shared container, or opens it. Calls wait for each other, so that no data is opened
  /// twice.
  func game(_ name: String, opening: () throws -> GameData) throws -> GameData {
    try state.withLock { state in
      guard !state.isClosed else { throw GameDataError.closed }
      if let open = state.open[name], !open.isClosed { return open }
      let opened = try opening()
      state.open[name] = opened
      return opened
    }
  }

  /// The open data with its names, sorted.
  var all: [(name: String, game: GameData)] {
    state.withLock { state in
      state.open.filter { !$0.value.isClosed }.sorted { $0.key < $1.key }.map { (name: $0.key, game: $0.value) }
    }
  }

  /// Opens nothing from now on, and returns what is open.
  func close() -> [GameData] {
    state.withLock { $0.isClosed = true }
    return all.map(\.game)
  }

  /// Opens data again: the game couldn't be closed.
  func reopen() { state.withLock { $0.isClosed = false } }
}
