import Foundation
import KeepsakeReplication
package import KeepsakeStore

/// Keeps a folder of plain files and a store the same: what a program changes in the folder becomes versions in the
/// store, and what the store receives from other devices becomes files.
///
/// Invariants at every moment, even after `kill -9`:
/// - The bytes of a file that has settled are in the store before anything replaces the file.
/// - A file changes by one rename, as a whole; whatever a rename replaced is examined before it is deleted.
/// - A version is made only for a change by a program, never for one that the mirror made itself.
///
/// Not thread-safe: the owner calls one pass after the other. Files that a program keeps open and writes to without
/// ever closing them (a database, for example) are kept whenever they don't change for a moment; what such a program
/// writes through the old descriptor after its file was replaced is only noticed within that moment.
package final class FolderMirror {
  /// A file that was moved away from a save's path, and is deleted once its bytes are known to be kept.
  struct Held {
    var temporary: Temporary
    var path: SavePath
    /// The signature that the file should have, as far as is known.
    var expected: FileSignature?
    var hash: ContentHash?
    /// What a version made from different bytes covers.
    var parents: [VersionID]
  }

  /// How long a file that failed is left alone: an attempt may write as many bytes as the file has.
  static let retryMilliseconds: Int64 = 5_000
  /// The number of passes in which a name may exist on the disk without being listed, before it is taken for another
  /// spelling of a listed name.
  private static let unlistedPasses = 3

  package struct Settings {
    /// How long a file must stay unchanged before it counts as complete.
    package var settleMilliseconds: Int64
    /// The size of the largest file, in bytes.
    package var maximumBytes: Int
    package var selection = MirrorSelection.everything
    /// The names that files can have in the folder.
    package var names = SystemNames.current
    /// The name of this device, which each version that is made here records; nil to record none.
    package var device: String?

    package init(settleMilliseconds: Int64 = 300, maximumBytes: Int = 256 << 20) {
      self.settleMilliseconds = settleMilliseconds
      self.maximumBytes = maximumBytes
    }
  }

  /// The time of day, and a clock that never jumps; both in milliseconds.
  package struct Clock {
    var now: () -> Int64
    var uptime: () -> Int64

    package static var system: Clock {
      let start = ContinuousClock.now
      return Clock(
        now: { Int64(Date().timeIntervalSince1970 * 1_000) },
        uptime: { Int64((ContinuousClock.now - start) / .milliseconds(1)) })
    }
  }

  /// What one pass did, and what it left for the next.
  package struct Pass {
    package var events: [MirrorEvent] = []
    /// Files that haven't stayed unchanged for long enough, and temporaries that wait.
    package var unsettled = 0
    /// When all of these files will have stayed unchanged for long enough, in milliseconds, if none changes again; nil
    /// if none only needs time. Not when the first will have: a game that writes one file after the other would have
    /// passes without a pause.
    package var settlesIn: Int64?
    /// Files that could not be read, kept or written; they are tried again after a while.
    package var troubled = 0
    package var isQuiet: Bool { events.allSatisfy(\.isIssue) && unsettled == 0 }

    package init() {}

    /// Returns how long to wait before the next pass: until all files may have settled, and at most this many
    /// milliseconds.
    package func pause(atMost interval: Int) -> Duration {
      .milliseconds(min(Int64(interval), max(settlesIn ?? .max, 1)))
    }
  }

  let folder: MirrorFolder
  let store: MirrorStore
  let settings: Settings
  let clock: Clock
  /// Called between the steps of the work; throws to stop there as a crash would.
  let checkpoint: (MirrorStep, SavePath?) throws -> Void
  /// Receives how many files of a pass are done, and of how many.
  package var progress: (Int, Int) -> Void = { _, _ in }
  /// Called after each commit of a pass, so that what it kept needn't wait for the end of the pass to be sent.
  package var committed: () -> Void = {}
  var random = SystemRandomNumberGenerator()
  var placed: PlacedTable
  var held: [Held] = []
  /// Changes that were read and wait for their commit.
  var changes: [Change] = []
  var changedBytes = 0
  var pass = Pass()
  /// Whether versions from elsewhere are written to the folder. While it is false, they wait in the store, and the
  /// folder is only read.
  package var isPlacing = true
  package private(set) var counts = MirrorCounts()

  /// The state of each path, and since when it has been unchanged.
  private var observed: [SavePath: (state: DiskState, since: Int64)] = [:]
  /// When the pass began to list the folder, and when it had.
  private var listed: (began: Int64, ended: Int64) = (0, 0)
  var ahead = ReadAhead()
  /// Slots whose heads may differ from what is placed.
  private var doubtful: Set<SavePath> = []
  /// When a file that failed is tried again.
  private var retries: [SavePath: Int64] = [:]
  /// The number of passes in a row in which a name existed without being listed.
  private var unlisted: [SavePath: Int] = [:]
  private var observedHeld: [Temporary: (signature: FileSignature, since: Int64)] = [:]
  private var knownIssues: Set<MirrorIssue> = []
  private var knownConflicts: [SavePath: [VersionID]] = [:]

  /// Opens the mirror of the folder at `path`, whose table is in the folder `state`, and deals with what an earlier run
  /// left behind.
  ///
  /// - Throws: `MirrorError` or `StoreError`.
  package init(
    path: String, state: String, store: Store, settings: Settings = Settings(), clock: Clock = .system,
    checkpoint: @escaping (MirrorStep, SavePath?) throws -> Void = { _, _ in }
  ) throws {
    self.store = MirrorStore(
      store: store, selection: settings.selection, names: settings.names, device: settings.device)
    self.settings = settings
    self.clock = clock
    self.checkpoint = checkpoint
    folder = try MirrorFolder(path: path, state: state, selection: settings.selection)
    placed = try PlacedTable(state: state, known: self.store.known)
    if placed.damagedLines > 0 {
      report(
        MirrorIssue(
          path: placed.path,
          message:
            "\(CountText.of(placed.damagedLines, "damaged line")): the files described there are compared by content"))
    }
    try takeUpTemporaries()
    try doubtEverything()
  }

  /// Examines every file slot again in the next pass that doesn't show what is placed. Call it at the start, after a
  /// reconnect, and now and then. Costs a pass over the store's table of heads.
  ///
  /// - Throws: `StoreError`.
  package func doubtEverything() throws { try doubt(nil) }

  /// Examines these slots again in the next pass, because the store reports that they changed.
  ///
  /// - Throws: `StoreError`.
  package func doubt(slots: [String]) throws { if !slots.isEmpty { try doubt(slots) } }

  private func doubt(_ slots: [String]?) throws {
    do {
      let (paths, issues) = try store.differing(slots, isKnown: knownIssues.contains) { placed[$0] }
      doubt(paths)
      issues.forEach(report)
    } catch let error as StoreError where error.code == .damaged {
      // One slot that can't be read holds up no other: each is looked at by itself.
      report(MirrorIssue(path: folder.path, message: "the store: \(error)"))
      doubt(placed.paths)
    }
  }

  /// Examines the slots of these paths again in the next pass.
  func doubt(_ paths: [SavePath]) { doubtful.formUnion(paths) }

  /// Makes one pass over the folder: keeps what changed in it, and places what is new in the store.
  ///
  /// Costs a stat of each file, and reading those that changed. A failure of one file doesn't hold up the others: it
  /// becomes an event, and the file is tried again after `retryMilliseconds`.
  ///
  /// - Throws: `MirrorError` if the folder itself can't be read.
  package func run() throws -> Pass {
    listed.began = clock.uptime()
    let listing = try folder.scan()
    listed.ended = clock.uptime()
    try checkpoint(.scanned, nil)
    listing.issues.forEach(report)
    try lookAtHeld()
    let paths = try candidates(in: listing)
    for (done, path) in paths.sorted().enumerated() {
      progress(done, paths.count)
      if let retry = retries[path], clock.uptime() < retry {
        pass.troubled += 1
        continue
      }
      retries[path] = nil
      try attempt(path) { try self.look(at: path, state: self.state(of: path, in: listing)) }
    }
    try commitChanges()
    observed = observed.filter { paths.contains($0.key) }
    ahead.keepOnly(paths)
    unlisted = unlisted.filter { paths.contains($0.key) }
    retries = retries.filter { paths.contains($0.key) }
    observedHeld = observedHeld.filter { one in held.contains { $0.temporary == one.key } }
    pass.unsettled += held.count
    let result = pass
    for event in result.events { counts.count(event) }
    pass = Pass()
    return result
  }

  /// The files of which a version is on the disk according to the table, sorted.
  package var placedFiles: [SavePath] { placed.paths.filter { placed[$0]?.hash != nil } }

  /// Whether a plain file is currently on the disk at `path`.
  package func hasFile(at path: SavePath) -> Bool { folder.status(of: path).signature != nil }

  /// Returns the paths that may need work: files that differ from what was placed, and slots that differ from what is
  /// placed. All others cost no more than their stat.
  private func candidates(in listing: FolderListing) throws -> Set<SavePath> {
    var paths = doubtful
    for (path, signature) in listing.files where differs(.file(signature), from: placed[path]) { paths.insert(path) }
    for (path, entry) in placed.entries where entry.hash != nil && listing.files[path] == nil {
      // The part that is mirrored was a larger one before, or on another system: what is outside of it now isn't
      // deleted.
      guard folder.selection.takes(path.components), settings.names.allows(path) else { continue }
      if try isInGoneFolder(path) {
        let folder = folder.selection.namedFolder(of: path.components)?.joined(separator: "/") ?? ""
        report(MirrorIssue(path: folder, message: "the folder is gone; its saves are kept, and come back at the start"))
        paths.remove(path)
      } else {
        paths.insert(path)
      }
    }
    return paths
  }

  private func look(at path: SavePath, state: DiskState) throws {
    guard state != .blocked else { return lookAtBlocked(path) }
    if differs(state, from: placed[path]) {
      guard isSettled(path, state) else {
        pass.unsettled += 1
        return readAhead(path, state)
      }
      guard try capture(path, state) else {
        observed[path] = nil
        pass.unsettled += 1
        return
      }
      doubtful.insert(path)
      // A change is shown once it is committed.
      if changes.last?.path == path { return try commitFullBatch() }
    } else {
      observed[path] = nil
    }
    try show(path)
  }

  /// Makes the disk show what the slot shows, if that is in doubt.
  func show(_ path: SavePath) throws {
    guard isPlacing, doubtful.contains(path) else { return }
    if try place(path) { doubtful.remove(path) } else { pass.unsettled += 1 }
  }

  /// Ends the doubt about a path whose file is the only version that its slot shows.
  func isShown(_ path: SavePath) {
    doubtful.remove(path)
    knownConflicts[path] = nil
  }

  /// A name that isn't in the listing is looked up by itself: a folder that could not be listed must not look empty.
  private func state(of path: SavePath, in listing: FolderListing) -> DiskState {
    if let signature = listing.files[path] {
      unlisted[path] = nil
      return .file(signature)
    }
    return folder.status(of: path) == .absent ? .absent : .blocked
  }

  /// Handles a path where something exists that the listing doesn't have as a file.
  private func lookAtBlocked(_ path: SavePath) {
    guard case .file = folder.status(of: path) else {
      if doubtful.contains(path) {
        report(
          MirrorIssue(
            path: path.text,
            message:
              "something else is at this path: not a regular file in ordinary folders; move it away to sync the save"))
      }
      return
    }
    // Either a new file, which the next listing will have, or another spelling of a name on a file system that treats
    // both as the same.
    unlisted[path, default: 0] += 1
    if unlisted[path, default: 0] <= Self.unlistedPasses {
      pass.unsettled += 1
    } else {
      report(
        MirrorIssue(
          path: path.text,
          message:
            """
            the folder's file system treats this name and that of another file as the same; rename one of them on a \
            device that has both
            """)
      )
    }
  }

  private func differs(_ state: DiskState, from entry: PlacedEntry?) -> Bool {
    switch state {
    case .file(let signature): entry?.hash == nil || entry?.signature != signature
    case .absent: entry?.hash != nil
    case .blocked: false
    }
  }

  /// Whether a state was listed twice, and so long apart.
  private func isSettled(_ path: SavePath, _ state: DiskState) -> Bool {
    let since: Int64
    if let last = observed[path], last.state == state {
      since = last.since
      if listed.began - since >= settings.settleMilliseconds { return true }
    } else {
      since = listed.ended
      observed[path] = (state, since)
    }
    let left = max(since + settings.settleMilliseconds - clock.uptime(), 0)
    pass.settlesIn = max(left, pass.settlesIn ?? left)
    return false
  }

  /// Whether a held file has stayed unchanged for long enough.
  func heldStill(_ temporary: Temporary, _ signature: FileSignature) -> Bool {
    let uptime = clock.uptime()
    guard let last = observedHeld[temporary], last.signature == signature else {
      observedHeld[temporary] = (signature, uptime)
      return false
    }
    return uptime - last.since >= settings.settleMilliseconds
  }

  /// Does the work on one file. What the disk or the store refuses becomes an event; any other error is rethrown.
  func attempt(_ path: SavePath?, _ work: () throws -> Void) throws {
    do {
      try work()
    } catch  where Self.isTrouble(error) {
      switch error {
      case let error as MirrorError: trouble(path, error.path, error.message)
      case let error as StoreError: trouble(path, nil, "the store: \(error)")
      default: trouble(path, nil, ErrorReason.text(error))
      }
    }
  }

  /// Whether the disk or the store refused something, temporarily or permanently.
  static func isTrouble(_ error: any Error) -> Bool {
    error is MirrorError || error is StoreError || error is CommitError
  }

  private func trouble(_ path: SavePath?, _ name: String?, _ message: String) {
    if let path { retries[path] = clock.uptime() + Self.retryMilliseconds }
    pass.troubled += 1
    report(MirrorIssue(path: name ?? path?.text ?? folder.path, message: message))
  }

  /// Reports each issue once.
  func report(_ issue: MirrorIssue) {
    if knownIssues.insert(issue).inserted { pass.events.append(.issue(issue)) }
  }

  /// Reports each conflict once for the same heads.
  func reportConflict(_ view: SlotView, at path: SavePath) {
    guard view.isConflict, let winner = view.winner else {
      knownConflicts[path] = nil
      return
    }
    let heads = view.heads.map(\.id)
    guard knownConflicts.updateValue(heads, forKey: path) != heads else { return }
    pass.events.append(.conflict(path, winner: winner.id, losers: Array(heads.dropFirst()), related: view.related))
  }
}

extension MirrorEvent {
  package var isIssue: Bool {
    if case .issue = self { true } else { false }
  }
}
