import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport

@testable import KeepsakeSync

/// A folder for one test, in memory where the system has one: these tests write thousands of small files durably.
final class CloudFolders {
  private let folder: TemporaryFolder
  var url: URL { folder.url }

  init() throws { folder = try .inMemory() }

  /// Creates a folder that is already set up as a cloud.
  func make(_ name: String = "cloud", container: ContainerID = FolderDevice.container) throws -> URL {
    let folder = url.appendingPathComponent(name)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    _ = try FolderPlace.plain(folder).container(making: container)
    return folder
  }
}

/// A device with the real engine and a real folder; its store is in memory, and a test decides when it does what.
final class FolderDevice {
  /// The same as that of `SimulatedDevice.connect`.
  static let container = ContainerID(high: 0, low: 1)

  var storage = SimulatedDevice()
  private(set) var engine = DeviceEngine()
  private(set) var cloud: FolderCloud
  var folder: URL { place.url }
  private let place: FolderPlace
  private let container: ContainerID
  let options: FolderOptions
  let engineOptions: DeviceEngine.Options
  var random: SeededGenerator
  private(set) var writer: WriterID
  var now: Int64 = 1_000_000
  var notifications: [EngineNotification] = []
  var requests: [ExchangeRequest] = []
  var answers: [ExchangeResponse] = []
  /// The process is killed before it receives the response to its next exchange with items.
  var losesAnswer = false
  private(set) var wasKilled = false
  /// Called after each commit of the store.
  var check: (FolderDevice) -> Void = { _ in }

  convenience init(
    _ folder: URL, seed: UInt64, options: FolderOptions = FolderOptions(), engine: DeviceEngine.Options = .init(),
    storage: SimulatedDevice? = nil
  ) throws {
    try self.init(.plain(folder), seed: seed, options: options, engine: engine, storage: storage)
  }

  init(
    _ place: FolderPlace, of container: ContainerID = FolderDevice.container, seed: UInt64,
    options: FolderOptions = FolderOptions(), engine: DeviceEngine.Options = .init(), storage: SimulatedDevice? = nil
  ) throws {
    (self.place, self.container) = (place, container)
    self.options = options
    engineOptions = engine
    random = SeededGenerator(seed: seed)
    writer = WriterID(seed)
    cloud = FolderCloud(place, container: container, options: options) { _ in nil }
    if let storage { self.storage = storage }
    try reopen()
  }

  /// Starts the game again, however it ended.
  func reopen() throws {
    engine = DeviceEngine(options: engineOptions)
    writer = WriterID(using: &random)
    cloud = FolderCloud(place, container: container, options: options) { [unowned self] hash in
      self.storage.hasContent(hash) ? try self.storage.encoded(hash, against: nil) : nil
    }
    try DeviceCommit.opened(in: &storage, using: &random)
    storage.connect()
  }

  // MARK: Syncing

  /// Sends and fetches until nothing is left to do, or something fails.
  @discardableResult
  func sync() throws -> EngineStatus.Phase {
    wasKilled = false
    try run(engine.status.phase == .stopped ? .started : .sync)
    return engine.status.phase
  }

  /// Does what the event stream does each second. A folder of iCloud that isn't there yet ends the stream, which begins
  /// again later.
  func listen() throws {
    wasKilled = false
    let seq: UInt64
    do {
      seq = try cloud.poll()
    } catch let failure as TransportFailure where failure.kind == .unreachable && place.owner == .account {
      return
    }
    if engine.status.phase == .stopped { try run(.started) }
    try run(.announced(CloudEvent(seq: seq)))
  }

  /// Tidies up as the event stream does, for which it isn't a failure that a folder of iCloud isn't there yet.
  ///
  /// - Parameter now: Milliseconds since 1970; nil for the device's own clock.
  func tidy(now: Int64? = nil) throws {
    do {
      try cloud.tidy(now: now ?? self.now)
    } catch let failure as TransportFailure where failure.kind == .unreachable && place.owner == .account {
      return
    }
  }

  private func run(_ event: EngineEvent) throws {
    var next: [EngineEvent] = [event]
    for _ in 0..<2_000 {
      guard !next.isEmpty else { return }
      for effect in try step(next.removeFirst()) {
        if let event = try perform(effect) { next.append(event) }
        if wasKilled { return try reopen() }
      }
    }
    throw NeverQuiet()
  }
  struct NeverQuiet: Error {}

  private func step(_ event: EngineEvent) throws -> [EngineEffect] {
    let effects = try engine.step(event, now: now, in: &storage, using: &random)
    check(self)
    return effects
  }

  private func perform(_ effect: EngineEffect) throws -> EngineEvent? {
    switch effect {
    case .exchange(let number, let request):
      requests.append(request)
      do {
        let answer = try cloud.exchange(request, now: now)
        answers.append(answer)
        if losesAnswer, !request.cells.isEmpty || !request.versions.isEmpty {
          (losesAnswer, wasKilled) = (false, true)
          return nil
        }
        return .answered(request: number, answer)
      } catch {
        return .failed(request: number, TransportFailure(inFolder: error))
      }
    case .upload(let number, let content):
      do {
        try cloud.putContent(content)
        return .uploaded(request: number, content.hash)
      } catch {
        return .failed(request: number, TransportFailure(inFolder: error))
      }
    case .download(let number, let hash):
      do {
        return .downloaded(request: number, hash, try cloud.content(hash))
      } catch {
        return .failed(request: number, TransportFailure(inFolder: error))
      }
    case .wake: return nil
    case .notify(let item):
      notifications.append(item)
      return nil
    }
  }

  // MARK: Playing

  @discardableResult
  func commit(_ draft: CommitDraft) throws -> [VersionRecord] {
    now += 1
    let records = try DeviceCommit.apply(draft, now: now, writer: writer, in: &storage, using: &random)
    check(self)
    return records
  }

  func raise(_ key: String, to value: Int64) throws {
    try commit(CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: key), .max(.int(value)))]))
  }

  func draft(_ text: String?, slot: String = "main", over parents: SaveParents = .everyHead) -> SaveDraft {
    SaveDraft(
      id: VersionID(using: &random), slot: slot, parents: parents,
      contents: text.map { [storage.addContent(Data($0.utf8))] } ?? [], length: text?.utf8.count ?? 0,
      metadata: SaveMetadata(),
      savedAtMilliseconds: now, tombstone: text == nil)
  }

  /// Makes a save that replaces all heads; nil deletes.
  @discardableResult
  func save(_ text: String?, slot: String = "main") throws -> VersionID {
    try commit(CommitDraft(saves: [draft(text, slot: slot)]))[0].id
  }

  // MARK: Looking

  func value(_ key: String) -> Int64? {
    guard case .max(.int(let value))? = storage.cell(CellKey(collection: "progress", key: key))?.value else {
      return nil
    }
    return value
  }

  /// The contents of a slot's heads, sorted; nil for a head without its content, "" for a delete.
  func texts(_ slot: String = "main") -> [String?] {
    storage.heads(of: slot).map { id in
      guard let record = storage.version(id)?.record else { return nil }
      var text = ""
      for hash in record.contents {
        guard let bytes = storage.content(hash) else { return nil }
        text += String(decoding: bytes, as: UTF8.self)
      }
      return text
    }.sorted { ($0 ?? "") < ($1 ?? "") }
  }

  /// Everything that a player can see, to be compared with other devices.
  var view: [String] {
    let cells = storage.cells(in: nil).map { "\($0.key) \($0.state)" }
    let saves = storage.slots().map { slot in "\(slot) \(storage.heads(of: slot)) \(texts(slot))" }
    return cells + saves.filter { !$0.hasSuffix(" [] []") }
  }

  /// Empty if iCloud hasn't brought a folder for them yet.
  var stateFiles: [String] {
    get throws {
      let path = folder.path + "/state"
      if place.owner == .account, !FileManager.default.fileExists(atPath: path) { return [] }
      return try FileManager.default.contentsOfDirectory(atPath: path).filter { !$0.hasPrefix(".") }.sorted()
    }
  }

  func state(_ name: String) -> URL { folder.appendingPathComponent("state/\(name)") }

  func contentFile(_ text: String) -> URL {
    URL(fileURLWithPath: FolderLayout(folder).content(ContentHash(of: Data(text.utf8))))
  }
}
