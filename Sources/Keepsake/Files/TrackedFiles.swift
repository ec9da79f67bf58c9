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
/// A version costs what changed since the one before, and the rules for history hold as for saved games. Where a cloud is connected it gets them too, unless
/// the file is made to stay on this device, and the player's other devices place the file where they want it:
///
///     for file in try game.files.list() where file.url == nil {
///       try game.files.place(file.name, in: levels)
///     }
///
/// Nothing writes into a file but `write`, `restore`, `place` and `update`: what arrives waits until the game asks. Safe to use from any thread; two threads
/// that write one file themselves have to agree about it.
public final class TrackedFiles: Sendable {
  private let core: GameCore
  /// Which file stands under which name.
  private let tracked = Mutex<[String: URL]>([:])

  init(core: GameCore) { self.core = core }

  /// Begins to keep versions of the file at `url`, or goes on, and captures what is there; a file that isn't there yet may come later.
  ///
  /// Where other devices have a file under this name that this one never placed, and what is here differs, the two stand beside each other: see
  /// `TrackedFile.heads`.
  ///
  /// - Parameters:
  ///   - name: What the versions are found by at the next start and on other devices; the file's own name, if nil. At most 200 bytes or so, as a slot's
  ///     name, and one file has it at a time.
  ///   - syncs: Whether a cloud gets its versions. Nil leaves it as it is: a new name syncs, and one whose versions were kept by a release that didn't
  ///     sync files stays here. False is `TrackedFile.keepLocal` with `kept`, and true `syncAgain`, where that changes anything.
  /// - Throws: `GameDataError` with `misuse` for a name that can't be or that another file has, for a folder, a device, or a link;
  ///   `tooLarge` for a file beyond 256 MiB; `StoreError` if it can't be read.
  @discardableResult
  public func track(_ url: URL, as name: String? = nil, syncs: Bool? = nil) throws -> TrackedFile {
    let file = TrackedFile(core: core, url: url.standardizedFileURL, name: (name ?? url.lastPathComponent).canonical)
    // Seen before it has the name.
    let isThere = try file.isThere()
    try file.checkName()
    try reserving(file) {
      // Before the first version, or it would be on its way already.
      if syncs == false { try file.keepLocal(cloudCopy: .kept) }
      if syncs == true { try file.syncAgain() }
      if isThere { try file.capture() }
    }
    return file
  }

  /// Puts a file of the player's other devices at `url`, as a whole or not at all, durably, and tracks it there.
  ///
  /// What another program put there meanwhile is never replaced. If the very same bytes are there already they are tracked as they are. Where devices wrote without knowing
  /// of each other, the version that is best everywhere is placed, and the others stand beside it: see `TrackedFile.heads`.
  ///
  /// - Parameter name: As `list` has it.
  /// - Throws: `GameDataError` with `missing` if nothing stands under the name; `occupied` if something else is there; `misuse` if the name is tracked at another
  ///   place, or for a folder, a device, or a link; `StoreError` if it can't be read or written. Nothing has changed then.
  @discardableResult
  public func place(_ name: String, at url: URL) throws -> TrackedFile {
    let file = TrackedFile(core: core, url: url.standardizedFileURL, name: name.canonical)
    let isThere = try file.isThere()
    try reserving(file) {
      guard let best = try file.heads().first else {
        throw GameDataError(.missing, "no file \"\(file.name.prefix(80))\" is known here")
      }
      let bytes = try file.data(of: best.id)
      guard try isThere ? file.read() == bytes : AtomicFile.create(bytes, at: file.url) else {
        throw GameDataError(.occupied, "there is something else at \(file.url.path): move it away, or track it under another name")
      }
      // After the file: a crash in between leaves one that is known again by its bytes.
      try core.store.write { try $0.setFileBase(best.id, of: file.slot) }
    }
    return file
  }

  /// The same under the file's own name in a folder that is there. Names come from other devices: one that isn't a plain name, and would lead elsewhere, is
  /// refused with `misuse`.
  @discardableResult
  public func place(_ name: String, in folder: URL) throws -> TrackedFile {
    let isPlain = !name.isEmpty && name != "." && name != ".." && !name.unicodeScalars.contains { "/\\:".unicodeScalars.contains($0) }
    guard isPlain else {
      throw GameDataError(.misuse, "\"\(name.prefix(80))\" is no plain name of a file: choose where it goes, and use place(_:at:)")
    }
    return try place(name, at: folder.appendingPathComponent(name))
  }

  /// Brings what another device wrote here, where `Cloud.downloads` left it in the cloud, so that it can be placed: as `SaveSlots.download` does.
  public nonisolated(nonsending) func download(_ name: String) async throws { try await core.download(FileSlot.slot(name.canonical)) }

  /// Lets go of the name until the file, or another one, is tracked again. Its versions stay.
  public func untrack(_ file: TrackedFile) {
    tracked.withLock { tracked in
      if tracked[file.name] == file.url { tracked[file.name] = nil }
    }
  }

  /// Gives the file its name, and takes it back if `body` throws: what could not be kept needs none.
  private func reserving(_ file: TrackedFile, _ body: () throws -> Void) throws {
    let before = tracked.withLock { tracked in
      let before = tracked[file.name]
      if before == nil { tracked[file.name] = file.url }
      return before
    }
    if let before, before != file.url {
      throw GameDataError(.misuse, "the name \"\(file.name.prefix(80))\" stands for \(before.path): give this file another")
    }
    do {
      try body()
    } catch {
      if before == nil { untrack(file) }
      throw error
    }
  }

  // MARK: Lists

  /// The files that the player has, on this device or another, sorted by name.
  ///
  /// Captures made before are waited for. Costs one query for all, and reads no content. Throws `StoreError` if the store can't be read.
  public func list() throws -> [FileSummary] {
    for pending in core.slotParents.undecided() {
      // One that failed has told so itself.
      _ = try? pending.wait()
    }
    let urls = tracked.withLock { $0 }
    let files = try core.store.read { transaction in
      let local = try transaction.localSlots()
      var files: [FileSummary] = []
      for (place, heads) in try transaction.headVersionsOfAllSlots() {
        let (slot, isLocal) = (LocalSlot.slot(at: place), LocalSlot.contains(place))
        guard let name = FileSlot.name(of: slot), local.contains(slot) == isLocal else { continue }
        let known = Dictionary(heads.map { ($0.version.record.id, $0) }) { first, _ in first }
        let view = try Resolution.view(
          heads: heads.map(\.version.record.id), policy: .newest, record: transaction.sharedRecords(known.mapValues(\.version)))
        guard let winner = view.winner, let head = known[winner.id] else { continue }
        files.append(
          FileSummary(
            name: name, current: Version(head.version, isPinned: head.isPinned), isConflicted: view.isConflict, isLocal: isLocal,
            isDownloaded: view.heads.contains { known[$0.id]?.isNotDownloaded == false }, url: urls[name]))
      }
      return files
    }
    return files.sorted { $0.name < $1.name }
  }

  /// The names under which versions are kept, deleted ones included, sorted. Throws `StoreError` if they can't be read.
  public func names() throws -> [String] {
    Set(try core.store.read { try $0.slots() }.compactMap { FileSlot.name(of: LocalSlot.slot(at: $0)) }).sorted()
  }
}
