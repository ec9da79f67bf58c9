public import Foundation
import KeepsakeStore
import Synchronization

extension GameData {
  /// Saves everything that is committed in another folder, after the game's own was removed, moved or replaced.
  ///
  /// A cleaning program, a script or an unmounted disk can take the folder away while the game runs. Every save then
  /// throws `StoreError` with `removed`, and `incidents` reports it. What was committed before is still readable in
  /// this process, until it ends:
  ///
  /// ```swift
  /// do {
  ///   try game.saves.save(world, to: .main)
  /// } catch let error as StoreError where error.code == .removed {
  ///   try game.rescue(to: safeFolder)
  ///   try? game.close()          // throws `removed` once more
  ///   game = try GameData.open("com.example.space", at: safeFolder)
  ///   try game.saves.save(world, to: .main)
  /// }
  /// ```
  ///
  /// The new folder is complete and durable on return, with saved games, history, progress, money, preferences and the
  /// tables if they were used since opening; its backups are made later. It is never written over anything. If the
  /// original comes back later, for instance because a disk is mounted again, don't use both: they are copies of each
  /// other.
  ///
  /// What is open is checked while it is copied. If something in it is damaged, it is copied all the same: opening the
  /// new folder then checks everything, repairs what it can and reports it in `incidents`.
  ///
  /// A commit that threw `removed` isn't in it, unless the files were taken away while it was written: then the error's
  /// `mayBeCommitted` is true. Later ones aren't in it, nor are preferences set since then. Saving again is safe.
  /// Repeat an operation on the wallet only with the same `id:`, which counts once.
  ///
  /// The data of shared containers that is open is saved with it.
  ///
  /// The new data isn't connected to a cloud until the game connects it. It has the same seal.
  ///
  /// Costs reading and writing all of the data, and checking it as at opening; commits wait meanwhile.
  ///
  /// - Parameter url: The new folder: one that doesn't exist, or is empty.
  /// - Throws: `GameDataError` with `occupied` if something is there, or `closed`; `StoreError` with `diskFull` or
  ///   `notPermitted` if the folder can't be written, or with `io` or `damaged` if what is open can't be read any more.
  ///   Nothing is at `url` then, unless it was shared data that couldn't be saved.
  public func rescue(to url: URL) throws {
    guard !closed.withLock({ $0 }) else { throw GameDataError.closed }
    do {
      try StoreRescue.rescue(core.store.base, records.openDatabase, to: url) { folder in
        try options.accounts?.recordName(in: folder)
      }
      for (name, shared) in sharedGames.all {
        try StoreFolder.create(SharedFolder.all(in: url), isPrivate: true)
        try shared.rescue(to: SharedFolder.url(of: name, in: url))
      }
    } catch is StoreRescue.Occupied {
      throw GameDataError(
        .occupied, "something is already at \(url.path), and is unchanged: choose a folder that doesn't exist yet")
    }
  }
}
