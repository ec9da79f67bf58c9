import Foundation
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeMirror

/// Thrown by a test where a process would die.
struct Crash: Error {}

/// A clock that only tests advance.
final class TestClock {
  var now: Int64 = 1_900_000_000_000
  var uptime: Int64 = 0

  func advance(_ milliseconds: Int64) {
    now += milliseconds
    uptime += milliseconds
  }

  var clock: FolderMirror.Clock { .init(now: { self.now }, uptime: { self.uptime }) }
}

/// A device of a test: a folder, its state, a store, and the mirror between them.
final class MirrorWorld {
  static let settle: Int64 = 300

  let root: URL
  let folder: URL
  let state: URL
  let store: Store
  let clock = TestClock()
  /// Called between the mirror's steps.
  var interrupt: (MirrorStep, SavePath?) throws -> Void = { _, _ in }
  private(set) var mirror: FolderMirror?
  private(set) var events: [MirrorEvent] = []

  private let maximumBytes: Int
  /// What the next mirror that is opened has.
  var selection: MirrorSelection
  var names: SystemNames

  init(
    maximumBytes: Int = 1 << 20, selection: MirrorSelection = .everything, names: SystemNames = .current
  ) throws {
    self.maximumBytes = maximumBytes
    self.selection = selection
    self.names = names
    root = TemporaryFolder.url("mirror")
    folder = root.appendingPathComponent("saves")
    state = folder.appendingPathComponent(".keepsake")
    try FileManager.default.createDirectory(at: state, withIntermediateDirectories: true)
    store = try Store.open(at: state)
  }

  deinit {
    // A folder left behind among the temporary files does no harm.
    try? FileManager.default.removeItem(at: root)
  }

  /// Opens a new mirror, as after a start of the program.
  @discardableResult
  func open() throws -> FolderMirror {
    mirror = nil
    var settings = FolderMirror.Settings(settleMilliseconds: Self.settle, maximumBytes: maximumBytes)
    settings.selection = selection
    settings.names = names
    let opened = try FolderMirror(
      path: folder.path, state: state.path, store: store, settings: settings, clock: clock.clock,
      checkpoint: { [weak self] step, path in try self?.interrupt(step, path) })
    mirror = opened
    return opened
  }

  /// Makes one pass over the folder.
  @discardableResult
  func look() throws -> FolderMirror.Pass {
    let mirror = try mirror ?? open()
    let pass = try mirror.run()
    events += pass.events
    return pass
  }

  /// Makes passes until nothing changes any more.
  func settle() throws {
    for _ in 0..<30 {
      let quiet = try look().isQuiet
      clock.advance(Self.settle)
      if quiet { return }
    }
    Issue.record("the mirror does not come to rest: \(events.suffix(5))")
  }

  // MARK: The game

  func write(_ text: String, to name: String) throws { try write(Data(text.utf8), to: name) }

  /// In place, as most games do.
  func write(_ bytes: Data, to name: String) throws {
    let url = folder.appendingPathComponent(name)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try bytes.write(to: url)
  }

  func delete(_ name: String) throws { try FileManager.default.removeItem(at: folder.appendingPathComponent(name)) }

  func read(_ name: String) throws -> String? {
    let url = folder.appendingPathComponent(name)
    guard FileManager.default.fileExists(atPath: url.path) else { return nil }
    return String(decoding: try Data(contentsOf: url), as: UTF8.self)
  }

  /// Every file that a game sees, by its relative path.
  func files() throws -> [String: String] {
    let mirror = try MirrorFolder(path: folder.path, state: state.path)
    var result: [String: String] = [:]
    for path in try mirror.scan().files.keys { result[path.text] = try read(path.text) }
    return result
  }

  func temporaries() throws -> [String] {
    try MirrorFolder(path: folder.path, state: state.path).scan().temporaries.map(\.name)
  }

  // MARK: The store

  func history(_ name: String) throws -> [VersionRecord] {
    try store.read { try $0.history(of: "file:" + name).map(\.record) }
  }

  /// The contents of a file's history as texts, sorted.
  func texts(_ name: String) throws -> [String] {
    try store.read { transaction in
      try transaction.history(of: "file:" + name).filter { !$0.record.tombstone }.map {
        String(decoding: try transaction.plainContent($0.record.contents[0]), as: UTF8.self)
      }.sorted()
    }
  }

  func heads(_ name: String) throws -> [VersionID] { try store.read { try $0.heads(of: "file:" + name) } }

  /// Stores a version, as if it came from the cloud.
  @discardableResult
  func receive(_ text: String?, slot: String, covers: [VersionID] = [], savedAt: Int64 = 1) throws -> VersionID {
    var random = SystemRandomNumberGenerator()
    let id = VersionID(using: &random)
    try store.write { transaction in
      let contents = try text.map { [try transaction.keepContent(Data($0.utf8))] } ?? []
      try transaction.putVersion(
        StoredVersion(
          record: VersionRecord(
            id: id, slot: slot, covers: covers, contents: contents, length: text?.utf8.count ?? 0,
            savedAtMilliseconds: savedAt, writer: WriterID(7), provisional: false, tombstone: text == nil),
          acknowledged: true, offered: true))
      for covered in covers { try transaction.markCovered(covered) }
    }
    try mirror?.doubt(slots: [slot])
    return id
  }

  /// Commits an earlier version's bytes over all heads, as `keepsake restore` does.
  func restore(_ record: VersionRecord) throws {
    var random = SystemRandomNumberGenerator()
    let writer = store.writer
    try store.write { transaction in
      let draft = SaveDraft(
        id: VersionID(using: &random), slot: record.slot, parents: .everyHead, contents: record.contents,
        length: record.length,
        savedAtMilliseconds: clock.now)
      try DeviceCommit.apply(
        CommitDraft(saves: [draft]), now: clock.now, writer: writer, in: &transaction, using: &random)
    }
  }

  /// Gives the other device everything that this one has, as a cloud between them would.
  func send(to other: MirrorWorld) throws {
    for slot in try store.read({ try $0.slots() }) {
      for version in try store.read({ try $0.history(of: slot) }).reversed() {
        let record = version.record
        let contents = try store.read { transaction in
          try record.contents.map { try transaction.encoded($0, against: nil) }
        }
        try other.store.write { transaction in
          guard try transaction.version(record.id) == nil else { return }
          for content in contents { _ = try transaction.receiveContent(content) }
          try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
          for covered in record.covers { try transaction.markCovered(covered) }
        }
      }
      try other.mirror?.doubt(slots: [slot])
    }
  }

  /// Syncs both devices, so that they show what either of them did.
  static func exchange(_ one: MirrorWorld, _ two: MirrorWorld) throws {
    try one.settle()
    try two.settle()
    try one.send(to: two)
    try two.send(to: one)
    try one.settle()
    try two.settle()
  }
}
