#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// Keeps a folder of plain files and a store the same: what a program changes in the folder becomes versions of the store,
/// what the store receives from other devices becomes files.
///
/// Invariants, at every moment, also after `kill -9`:
/// - The bytes of a file that stood still are in the store before anything takes the file's place.
/// - A file changes by one rename, whole; whatever a rename took away is looked at before it is deleted.
/// - A version is made for a change by a program only, never for one that the mirror made itself.
///
/// Not thread-safe: whoever owns it calls one pass after the other. Files that a program keeps open and writes into without
/// ever closing them (a database, say) are kept whenever they stand still for a moment; what such a program writes through
/// the old descriptor after its file was replaced is only noticed within that moment.
final class FolderMirror {
  /// A file that was moved out of a save's place, and is deleted once its bytes are known to be kept.
  struct Held {
    var temporary: Temporary
    var path: SavePath
    /// What the bytes should be, as far as is known.
    var expected: FileSignature?
    var hash: ContentHash?
    /// What a version made of other bytes covers.
    var parents: [VersionID]
  }

  /// How long a file that made trouble is left alone: an attempt may write as many bytes as the file has.
  static let retryMilliseconds: Int64 = 5_000
  /// Passes in which a name may stand on the disk and yet not be listed before it is taken for another's spelling.
  private static let unlistedPasses = 3

  struct Settings {
    /// How long a file has to stand still before it is taken for complete.
    var settleMilliseconds: Int64 = 300
    /// The most plain bytes of a file.
    var maximumBytes = 256 << 20
  }

  /// The time of day, and a time that never jumps; both in milliseconds.
  struct Clock {
    var now: () -> Int64
    var uptime: () -> Int64

    static var system: Clock {
      let start = ContinuousClock.now
      return Clock(
        now: { Int64(Date().timeIntervalSince1970 * 1_000) },
        uptime: { Int64((ContinuousClock.now - start) / .milliseconds(1)) })
    }
  }

  /// What one pass did, and what it left for the next.
  struct Pass {
    var events: [MirrorEvent] = []
    /// Files that have not stood still for long enough, and temporaries that wait.
    var unsettled = 0
    /// Files that could not be read, kept or written; they are tried again after a while.
    var troubled = 0
    var isQuiet: Bool { events.allSatisfy(\.isIssue) && unsettled == 0 }
  }

  let folder: MirrorFolder
  let store: MirrorStore
  let settings: Settings
  let clock: Clock
  /// Called between the steps of the work; throws to stop there as a crash would.
  let checkpoint: (MirrorStep, SavePath?) throws -> Void
  /// Told how many files of a look are done, of how many.
  var progress: (Int, Int) -> Void = { _, _ in }
  var random = SystemRandomNumberGenerator()
  var placed: PlacedTable
  var held: [Held] = []
  /// Changes that were read and wait for their commit.
  var changes: [Change] = []
  var pass = Pass()
  private(set) var counts = MirrorCounts()

  /// Since when a path has looked as it does.
  private var observed: [SavePath: (state: DiskState, since: Int64)] = [:]
  /// Slots whose heads may differ from what is placed.
  private var doubtful: Set<SavePath> = []
  /// When a file that made trouble is tried again.
  private var retries: [SavePath: Int64] = [:]
  /// In how many passes in a row a name was there without being listed.
  private var unlisted: [SavePath: Int] = [:]
  private var observedHeld: [Temporary: (signature: FileSignature, since: Int64)] = [:]
  private var knownIssues: Set<MirrorIssue> = []
  private var knownConflicts: [SavePath: [VersionID]] = [:]

  /// Opens the mirror of the folder at `path`, whose table is in the folder `state`, and looks after what an earlier run
  /// left behind.
  ///
  /// - Throws: `MirrorError` or `StoreError`.
  init(
    path: String, state: String, store: Store, settings: Settings = Settings(), clock: Clock = .system,
    checkpoint: @escaping (MirrorStep, SavePath?) throws -> Void = { _, _ in }
  ) throws {
    self.store = MirrorStore(store: store)
    self.settings = settings
    self.clock = clock
    self.checkpoint = checkpoint
    folder = try MirrorFolder(path: path, state: state)
    placed = try PlacedTable(state: state, isKnown: self.store.isKnown)
    if placed.damagedLines > 0 {
      report(
        MirrorIssue(
          path: Printable.text(placed.path),
          message: "\(placed.damagedLines) lines were damaged; the files in question are compared by content"))
    }
    try takeUpTemporaries()
    try doubtEverything()
  }

  /// Looks at every file slot again in the next pass: at the start, after a reconnect, now and then.
  func doubtEverything() throws {
    let (paths, issues) = try store.paths()
    doubtful.formUnion(paths)
    issues.forEach(report)
  }

  /// Looks at these slots again in the next pass: the store says that they changed.
  func doubt(slots: [String]) {
    for slot in slots {
      do throws(SavePathRefusal) {
        if let path = try SavePath(slot: slot) { doubtful.insert(path) }
      } catch {
        report(MirrorIssue(path: Printable.text(slot), message: "not written here: \(error.message)"))
      }
    }
  }

  /// Looks at the whole folder once, keeps what changed in it, and places what is new in the store.
  ///
  /// Costs a look at each file, and reading those that changed. One file's trouble doesn't hold up the others: it is an
  /// event, and tried again in the next pass.
  ///
  /// - Throws: `MirrorError` if the folder itself can't be read.
  func run() throws -> Pass {
    let listing = try folder.scan()
    try checkpoint(.scanned, nil)
    listing.issues.forEach(report)
    try lookAtHeld()
    let paths = candidates(in: listing)
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
    unlisted = unlisted.filter { paths.contains($0.key) }
    retries = retries.filter { paths.contains($0.key) }
    observedHeld = observedHeld.filter { one in held.contains { $0.temporary == one.key } }
    pass.unsettled += held.count
    let result = pass
    for event in result.events { counts.count(event) }
    pass = Pass()
    return result
  }

  /// What may need work: files that aren't as they were placed, and slots that aren't what is placed. All others cost no more
  /// than their look.
  private func candidates(in listing: FolderListing) -> Set<SavePath> {
    var paths = doubtful
    for (path, signature) in listing.files where differs(.file(signature), from: placed[path]) { paths.insert(path) }
    for (path, entry) in placed.entries where entry.hash != nil && listing.files[path] == nil { paths.insert(path) }
    return paths
  }

  private func look(at path: SavePath, state: DiskState) throws {
    guard state != .blocked else { return lookAtBlocked(path) }
    if differs(state, from: placed[path]) {
      guard isSettled(path, state) else {
        pass.unsettled += 1
        return
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

  /// Makes the disk show what stands in the slot, if that is in doubt.
  func show(_ path: SavePath) throws {
    guard doubtful.contains(path) else { return }
    if try place(path) { doubtful.remove(path) } else { pass.unsettled += 1 }
  }

  /// A name that isn't in the listing is asked for itself: a folder that could not be listed must not look empty.
  private func state(of path: SavePath, in listing: FolderListing) -> DiskState {
    if let signature = listing.files[path] {
      unlisted[path] = nil
      return .file(signature)
    }
    return folder.status(of: path) == .absent ? .absent : .blocked
  }

  /// Something stands at the path that the listing doesn't have as a file.
  private func lookAtBlocked(_ path: SavePath) {
    guard case .file = folder.status(of: path) else {
      if doubtful.contains(path) {
        report(
          MirrorIssue(path: Printable.text(path.text), message: "something that is not a plain file in plain folders stands in its place"))
      }
      return
    }
    // A newcomer, which the next listing has; or another spelling of a name, where the file system takes both for one.
    unlisted[path, default: 0] += 1
    if unlisted[path, default: 0] <= Self.unlistedPasses {
      pass.unsettled += 1
    } else {
      report(
        MirrorIssue(path: Printable.text(path.text), message: "this folder can't tell the name from another one's; rename one of them"))
    }
  }

  private func differs(_ state: DiskState, from entry: PlacedEntry?) -> Bool {
    switch state {
    case .file(let signature): entry?.hash == nil || entry?.signature != signature
    case .absent: entry?.hash != nil
    case .blocked: false
    }
  }

  private func isSettled(_ path: SavePath, _ state: DiskState) -> Bool {
    let uptime = clock.uptime()
    guard let last = observed[path], last.state == state else {
      observed[path] = (state, uptime)
      return false
    }
    return uptime - last.since >= settings.settleMilliseconds
  }

  /// Whether a held file has been as it is for long enough.
  func heldStill(_ temporary: Temporary, _ signature: FileSignature) -> Bool {
    let uptime = clock.uptime()
    guard let last = observedHeld[temporary], last.signature == signature else {
      observedHeld[temporary] = (signature, uptime)
      return false
    }
    return uptime - last.since >= settings.settleMilliseconds
  }

  /// Does the work on one file; what the disk or the store refuses becomes an event, everything else is thrown on.
  func attempt(_ path: SavePath?, _ work: () throws -> Void) throws {
    do {
      try work()
    } catch  where Self.isTrouble(error) {
      switch error {
      case let error as MirrorError: trouble(path, error.path, error.message)
      case let error as StoreError: trouble(path, nil, "the store: \(error)")
      default: trouble(path, nil, "\(error)")
      }
    }
  }

  /// Whether the disk or the store refused something, for now or for good.
  static func isTrouble(_ error: any Error) -> Bool { error is MirrorError || error is StoreError || error is CommitError }

  private func trouble(_ path: SavePath?, _ name: String?, _ message: String) {
    if let path { retries[path] = clock.uptime() + Self.retryMilliseconds }
    pass.troubled += 1
    report(MirrorIssue(path: Printable.text(name ?? path?.text ?? folder.path), message: message))
  }

  /// Each trouble is told once.
  func report(_ issue: MirrorIssue) {
    if knownIssues.insert(issue).inserted { pass.events.append(.issue(issue)) }
  }

  /// Each conflict is told once, for the same heads.
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
  var isIssue: Bool {
    if case .issue = self { true } else { false }
  }
}
#endif
