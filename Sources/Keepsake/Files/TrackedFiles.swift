public import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// Versions of files that the game writes and reads itself.
///
/// ```swift
/// let file = try game.files.track(url)         // at each start; keeps a version of the contents
/// try myEngine.writeLevel(to: url)
/// try file.capture()                           // keeps a version of what was written
/// let versions = try file.history()
/// try file.restore(versions[3].id)             // can itself be undone
/// ```
///
/// A version costs about what changed since the previous one, and the history rules apply as for saved games. A
/// connected cloud also gets the versions, unless the file is local, and the player's other devices can place the file:
///
/// ```swift
/// for file in try game.files.list() where file.url == nil {
///   try game.files.place(file.name, in: levels)
/// }
/// ```
///
/// Only `write`, `restore`, `place` and `update` write to a file: received versions wait until the game asks for them.
/// Safe to use from any thread; threads that write a file themselves must coordinate.
public final class TrackedFiles: Sendable {
  private let core: GameCore
  /// The tracked files by name.
  private let tracked = Mutex<[String: URL]>([:])

  init(core: GameCore) { self.core = core }

  /// Starts or continues keeping versions of a file, and captures its contents. The file may be created later.
  ///
  /// If other devices have a file of this name with different contents, and this device has never placed it, both are
  /// kept as a conflict: see `TrackedFile.heads()`.
  ///
  /// - Parameters:
  ///   - url: The file.
  ///   - name: The name of its versions, at the next start and on other devices; the file's own name if nil. At most
  ///     about 200 bytes. A name belongs to one file at a time.
  ///   - syncs: Whether a cloud gets the versions. If nil, the current setting stays: a new name is synced, and a name
  ///     whose versions were kept by a release that didn't sync files is local. False does the same as
  ///     `TrackedFile.keepLocal` with `kept`, true the same as `syncAgain`.
  /// - Returns: The tracked file.
  /// - Throws: `GameDataError` with `misuse` for an invalid name or one that another file has, and for a folder, a
  ///   device or a link; `tooLarge` for a file of more than 256 MiB; `StoreError` if it can't be read.
  @discardableResult
  public func track(_ url: URL, as name: String? = nil, syncs: Bool? = nil) throws -> TrackedFile {
    let file = TrackedFile(core: core, url: url.standardizedFileURL, name: (name ?? url.lastPathComponent).canonical)
    // Checked before the file reserves the name.
    let isThere = try file.isThere()
    try file.checkName()
    try reserving(file) {
      // Before the first version is captured, which would otherwise already be sent.
      if syncs == false { try file.keepLocal(cloudCopy: .kept) }
      if syncs == true { try file.syncAgain() }
      if isThere { try file.capture() }
    }
    return file
  }

  /// Writes a file from the player's other devices to a location, atomically and durably, and tracks it there.
  ///
  /// An existing file with different contents is never replaced; one with the same contents is tracked. In a conflict,
  /// places the version that ranks first on every device: see `TrackedFile.heads()`.
  ///
  /// - Parameters:
  ///   - name: A name from `list`.
  ///   - url: Where to write the file.
  /// - Returns: The tracked file.
  /// - Throws: `GameDataError` with `missing` if the name has no version, `occupied` if another file is there,
  ///   `notDownloaded` if the contents are only in the cloud, `misuse` if the name is tracked at another location, or
  ///   for a folder, a device or a link; `StoreError` if it can't be read or written. Nothing has changed then, unless
  ///   the error came after the file was written: from making it durable, or from recording its version. The file then
  ///   exists, and the next call tracks it.
  @discardableResult
  public func place(_ name: String, at url: URL) throws -> TrackedFile {
    let file = TrackedFile(core: core, url: url.standardizedFileURL, name: name.canonical)
    let isThere = try file.isThere()
    try reserving(file) {
      guard let best = try file.heads().first else {
        throw GameDataError(.missing, "no file \"\(file.name.prefix(80))\" is known on this device")
      }
      let bytes = try file.data(of: best.id)
      guard try isThere ? file.read() == bytes : AtomicFile.create(bytes, at: file.url) else {
        throw GameDataError(
          .occupied, "there is something else at \(file.url.path): move it away, or track it under another name")
      }
      // After the file is written: if the game crashes in between, the file is recognized by its bytes the next time.
      try core.store.write { try $0.setFileBase(best.id, of: file.slot) }
    }
    return file
  }

  /// Writes a file from the player's other devices to an existing folder, under its own name.
  ///
  /// Names come from other devices: one that isn't a plain file name, and might lead out of the folder, throws
  /// `misuse`.
  ///
  /// - Parameters:
  ///   - name: A name from `list`.
  ///   - folder: The folder.
  /// - Returns: The tracked file.
  /// - Throws: As `place(_:at:)`.
  @discardableResult
  public func place(_ name: String, in folder: URL) throws -> TrackedFile {
    let isPlain =
      !name.isEmpty && name != "." && name != ".."
      && !name.unicodeScalars.contains { "/\\:".unicodeScalars.contains($0) }
    guard isPlain else {
      throw GameDataError(
        .misuse, "\"\(name.prefix(80))\" is not a plain file name: choose a location and use place(_:at:)")
    }
    return try place(name, at: folder.appendingPathComponent(name))
  }

  /// Downloads the current version of a file that `Cloud.downloads` left in the cloud, so that it can be placed.
  ///
  /// - Parameter name: A name from `list`.
  /// - Throws: As `SaveSlots.download`.
  public nonisolated(nonsending) func download(_ name: String) async throws {
    try await core.download(SlotKey.file(name.canonical).text)
  }

  /// Stops tracking a file until this or another file is tracked under the name again. Its versions stay.
  ///
  /// - Parameter file: The file.
  public func untrack(_ file: TrackedFile) {
    tracked.withLock { tracked in
      if tracked[file.name] == file.url { tracked[file.name] = nil }
    }
  }

  /// Reserves the name for the file, and releases it if `body` throws: a file that couldn't be tracked needs no name.
  private func reserving(_ file: TrackedFile, _ body: () throws -> Void) throws {
    let before = tracked.withLock { tracked in
      let before = tracked[file.name]
      if before == nil { tracked[file.name] = file.url }
      return before
    }
    if let before, before != file.url {
      throw GameDataError(
        .misuse, "the name \"\(file.name.prefix(80))\" is already used for \(before.path): give this file another name")
    }
    do {
      try body()
    } catch {
      if before == nil { untrack(file) }
      throw error
    }
  }

  // MARK: Lists

  /// Lists the player's files, from this device and others, sorted by name.
  ///
  /// Waits for earlier captures. Costs one query; doesn't read any contents.
  ///
  /// - Returns: The files.
  /// - Throws: `StoreError` if the store can't be read.
  public func list() throws -> [FileSummary] {
    for pending in core.slotParents.undecided() {
      // A capture that failed has already reported its error.
      _ = try? pending.wait()
    }
    let urls = tracked.withLock { $0 }
    let files = try core.store.read { transaction in
      let local = try transaction.localSlots()
      var files: [FileSummary] = []
      for (key, heads) in try transaction.headVersionsOfAllSlots() {
        let isLocal = key.isLocal
        guard let name = key.fileName, local.contains(key.slot) == isLocal else { continue }
        let known = Dictionary(heads.map { ($0.version.record.id, $0) }) { first, _ in first }
        let view = try Resolution.view(
          heads: heads.map(\.version.record.id), policy: .newest,
          record: transaction.sharedRecords(known.mapValues(\.version)))
        guard let winner = view.winner, let head = known[winner.id] else { continue }
        files.append(
          FileSummary(
            name: name, current: Version(head.version, isPinned: head.isPinned), isConflicted: view.isConflict,
            isLocal: isLocal,
            isDownloaded: view.heads.contains { known[$0.id]?.isNotDownloaded == false }, url: urls[name]))
      }
      return files
    }
    return files.sorted { $0.name < $1.name }
  }

  /// Lists the names that have versions, including deleted ones, sorted.
  ///
  /// - Returns: The names.
  /// - Throws: `StoreError` if the store can't be read.
  public func names() throws -> [String] {
    Set(try core.store.read { try $0.slots() }.compactMap { SlotKey(text: $0).fileName }).sorted()
  }
}
