public import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// Versions of files that stay the game's own: where they are, as they are, read by the game's own loader.
///
///     let file = try game.files.track(url)           // at each start; keeps a version of what is there
///     try myEngine.writeLevel(to: url)
///     try file.capture()                             // a version of what was written
///     let versions = try file.history()
///     try file.restore(versions[3].id)               // puts it back, and can itself be undone
///
/// A version costs what changed since the one before, and the rules for history hold as for saved games. Versions of files stay on this device:
/// no cloud gets them. Safe to use from any thread; two threads that write one file themselves have to agree about it.
public final class TrackedFiles: Sendable {
  private let core: GameCore
  /// Which file stands under which name.
  private let tracked = Mutex<[String: URL]>([:])

  init(core: GameCore) { self.core = core }

  /// Begins to keep versions of the file at `url`, or goes on, and captures what is there; a file that isn't there yet may come later.
  ///
  /// - Parameter name: What the versions are found by at the next start; the file's own name, if nil. At most 200 bytes or so, as a slot's
  ///   name, and one file has it at a time.
  /// - Throws: `GameDataError` with `misuse` for a name that can't be or that another file has, for a folder, a device, or a link;
  ///   `tooLarge` for a file beyond 256 MiB; `StoreError` if it can't be read.
  @discardableResult
  public func track(_ url: URL, as name: String? = nil) throws -> TrackedFile {
    let name = (name ?? url.lastPathComponent).canonical
    let url = url.standardizedFileURL
    let file = TrackedFile(core: core, url: url, name: name)
    // Seen before it has the name.
    let isThere = try file.isThere()
    try file.checkName()
    let taken = tracked.withLock { tracked -> URL? in
      if let other = tracked[name], other != url { return other }
      tracked[name] = url
      return nil
    }
    if let taken { throw GameDataError(.misuse, "the name \"\(name.prefix(80))\" stands for \(taken.path): give this file another") }
    do {
      if isThere { try file.capture() }
    } catch {
      // What could not be kept needs no name.
      untrack(file)
      throw error
    }
    return file
  }

  /// Lets go of the name until the file, or another one, is tracked again. Its versions stay.
  public func untrack(_ file: TrackedFile) {
    tracked.withLock { tracked in
      if tracked[file.name] == file.url { tracked[file.name] = nil }
    }
  }

  /// The names under which versions are kept, sorted. Throws `StoreError` if they can't be read.
  public func names() throws -> [String] {
    try core.store.read { try $0.slots() }.compactMap(LocalSlot.fileName).sorted()
  }
}
