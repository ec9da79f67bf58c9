#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakeReplication
import KeepsakeStore

/// The mirrors of a game's save places, all on one store.
final class SaveAreas {
  /// What was done, for the summary.
  struct Counts: Hashable {
    var versions = 0
    var deleted = 0
    var received = 0
    /// The files of `versions`.
    var changed: Set<SavePath> = []
  }

  private struct Open {
    var area: SaveArea
    var mirror: FolderMirror?
    /// Whether the folder was there before and is gone.
    var isGone = false
  }

  private let store: Store
  private let state: URL
  private let settleMilliseconds: Int
  private var all: [Open]
  private(set) var counts = Counts()
  /// What isn't synced and why, in words; each once.
  private(set) var issues: [MirrorIssue] = []
  /// Files that could not be read, kept or written in the last pass.
  private(set) var troubled = 0
  /// The last pass over each folder.
  private var passes: [FolderMirror.Pass] = []
  /// Files of the last pass that changed too recently.
  var unsettled: Int { passes.reduce(0) { $0 + $1.unsettled } }
  /// Whether versions from elsewhere are written to the folders.
  var isPlacing = false {
    didSet { for one in all { one.mirror?.isPlacing = isPlacing } }
  }
  /// Called after each commit, with which saves become ready to be sent.
  var committed: () -> Void = {}

  /// - Parameter state: The folder of the store.
  init(_ areas: [SaveArea], store: Store, state: URL, settleMilliseconds: Int) {
    self.store = store
    self.state = state
    self.settleMilliseconds = settleMilliseconds
    all = areas.map { Open(area: $0) }
  }

  /// Makes one pass over all folders that exist; returns whether nothing moved.
  ///
  /// - Throws: What the store throws; what is wrong with a folder or a file is an issue.
  func look() throws -> Bool {
    var isQuiet = true
    (troubled, passes) = (0, [])
    for index in all.indices {
      do {
        guard let mirror = try mirror(of: index) else { continue }
        let pass = try mirror.run()
        note(pass.events)
        troubled += pass.troubled
        passes.append(pass)
        isQuiet = isQuiet && pass.isQuiet
      } catch let error as MirrorError {
        // The folder is gone, or a part of it can't be listed: the others are not to blame.
        all[index].mirror = nil
        if error.code == .folder { all[index].isGone = true }
        note([.issue(MirrorIssue(path: error.path ?? all[index].area.folder, message: error.message))])
        troubled += error.code == .folder ? 0 : 1
      }
    }
    return isQuiet
  }

  /// Returns how long to wait before the next look, at most this many milliseconds.
  func pause(atMost interval: Int) -> Duration {
    passes.map { $0.pause(atMost: interval) }.min() ?? .milliseconds(interval)
  }

  /// Prepares the folders for what the store has: those that are gone or were never there get their saves in the next
  /// pass with `isPlacing`.
  ///
  /// - Returns: How many saves come back to folders that were here before.
  /// - Throws: `StoreError`, `MirrorError`.
  func bringBackGone() throws -> Int {
    lazy var slots = Result { try fileSlots() }
    var count = 0
    for index in all.indices {
      let area = all[index].area
      if let mirror = try mirror(of: index) {
        count += try mirror.bringBackGone(everything: false)
      } else if try slots.get().contains(where: { area.path(of: $0) != nil }) {
        try StoreFolder.create(URL(fileURLWithPath: area.folder, isDirectory: true))
        count += try mirror(of: index)?.bringBackGone(everything: true) ?? 0
      }
      try all[index].mirror?.doubtEverything()
    }
    return count
  }

  /// The conflicts in which this device has a side.
  func conflicts() throws -> [(mirror: FolderMirror, conflict: MirrorConflict)] {
    try all.compactMap(\.mirror).flatMap { mirror in try mirror.conflicts().map { (mirror, $0) } }
  }

  /// The paths of files that the store has and that are in none of the places: from a device with another manifest, or
  /// from an attacker. Nothing is written there.
  func outside() throws -> [String] {
    try fileSlots().filter { slot in !all.contains { $0.area.path(of: slot) != nil } }
  }

  func resetCounts() { counts = Counts() }

  /// Takes what isn't synced and wasn't taken yet.
  func takeIssues() -> [MirrorIssue] {
    defer { issues = [] }
    return issues
  }

  private func fileSlots() throws -> [String] {
    try store.read { try $0.slots() }.filter { $0.hasPrefix(SaveArea.slotPrefix) }
  }

  /// Returns the mirror of an area, opened if its folder exists.
  private func mirror(of index: Int) throws -> FolderMirror? {
    if let open = all[index].mirror { return open }
    let area = all[index].area
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: area.folder, isDirectory: &isFolder), isFolder.boolValue else {
      return nil
    }
    let table = state.appendingPathComponent("places/" + area.stateName, isDirectory: true)
    try StoreFolder.create(table, isPrivate: true)
    var settings = FolderMirror.Settings(settleMilliseconds: Int64(settleMilliseconds))
    settings.selection = area.selection
    settings.device = DeviceName.current
    let mirror = try FolderMirror(path: area.folder, state: table.path, store: store, settings: settings)
    mirror.isPlacing = isPlacing
    mirror.committed = { [unowned self] in committed() }
    // A game that makes its folder anew has not deleted the saves that were in it.
    if all[index].isGone { _ = try mirror.bringBackGone(everything: true) }
    all[index].isGone = false
    all[index].mirror = mirror
    return mirror
  }

  private func note(_ events: [MirrorEvent]) {
    for event in events {
      switch event {
      case .captured(let path, _, _), .rescued(let path, _, _):
        counts.versions += 1
        counts.changed.insert(path)
      case .deleted: counts.deleted += 1
      case .placed, .removed: counts.received += 1
      case .conflict: break
      case .issue(let issue): if !issues.contains(issue) { issues.append(issue) }
      }
    }
  }
}

extension SaveArea {
  static let slotPrefix = SavePath.slotPrefix

  /// The name of the folder with the table of what is placed here.
  var stateName: String { String(ContentHash(of: Data(selection.prefix.utf8)).description.prefix(16)) }

  /// Returns the components of a slot's path in the folder; nil if it isn't one of this area.
  func path(of slot: String) -> [String]? {
    let start = Self.slotPrefix + selection.prefix
    guard slot.utf8.starts(with: start.utf8) else { return nil }
    let components = String(decoding: slot.utf8.dropFirst(start.utf8.count), as: UTF8.self).split(
      separator: "/", omittingEmptySubsequences: false
    ).map(String.init)
    return selection.takes(components) ? components : nil
  }

  /// Whether files of a folder with this path would be taken for saves, or saves are inside of it.
  func overlaps(_ path: String) -> Bool {
    func parts(_ path: String) -> [String] {
      Array(URL(fileURLWithPath: path).resolvingSymlinksInPath().standardizedFileURL.pathComponents)
    }
    let (own, other) = (parts(folder), parts(path))
    if other.starts(with: own), other.count > own.count, selection.takes(Array(other.dropFirst(own.count))) {
      return true
    }
    return selection.patterns.contains { pattern in
      let named = pattern.prefix { $0.literalName != nil }.compactMap(\.literalName)
      return (own + named).starts(with: other)
    }
  }
}
#endif
