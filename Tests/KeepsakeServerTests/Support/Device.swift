#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeSync

/// A device as a game has one: a store in a folder, and a service that syncs it with a cloud.
final class Device: Sendable {
  let store: Store
  let credentials: CloudCredentials
  let sync: SyncService<Store>
  /// Nil if the test supplies its own transport.
  let traffic: TrafficCounter?

  init(_ credentials: CloudCredentials, in folder: URL, transport: (any Transport)? = nil) throws {
    self.credentials = credentials
    store = try Store.open(at: folder.appendingPathComponent("device-\(credentials.device)"))
    var random = SystemRandomNumberGenerator()
    try store.write { try DeviceCommit.opened(in: &$0, using: &random) }
    let http = transport == nil ? HTTPTransport(credentials) : nil
    traffic = http?.traffic
    sync = SyncService(
      store: store, transport: transport ?? http ?? HTTPTransport(credentials), container: credentials.container)
  }

  /// A first device, of a new player.
  static func register(with server: LiveServer, in folder: URL, via url: URL? = nil) async throws -> Device {
    let account = HTTPAccount(url: url ?? server.url, appKey: server.appKey)
    return try Device(try await account.register(name: "First"), in: folder)
  }

  /// Another device of the same player.
  func pair(with server: LiveServer, in folder: URL, via url: URL? = nil) async throws -> Device {
    let code = try await HTTPAccount.pairingCode(for: credentials).code
    let account = HTTPAccount(url: url ?? server.url, appKey: server.appKey)
    return try Device(try await account.join(code: code, name: "Second"), in: folder)
  }

  @discardableResult
  func save(_ bytes: Data, to slot: String, parents: SaveParents = .everyHead) throws -> VersionID {
    var random = SystemRandomNumberGenerator()
    let id = VersionID(using: &random)
    let writer = store.writer
    try store.submit([(slot: slot, bytes: bytes)]) { transaction, kept in
      var random = SystemRandomNumberGenerator()
      let draft = SaveDraft(
        id: id, slot: slot, parents: parents, contents: kept.flatMap(\.hashes), length: bytes.count,
        savedAtMilliseconds: 1_000)
      try DeviceCommit.apply(CommitDraft(saves: [draft]), now: 1_000, writer: writer, in: &transaction, using: &random)
    }.wait(within: Patience.limit)
    sync.committed()
    return id
  }

  func raise(_ key: String, to value: Int64) throws {
    try commit(CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: key), .max(.int(value)))]))
  }

  func add(_ key: String, _ count: UInt64) throws {
    try commit(
      CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: key), .add(plus: count, minus: 0))]))
  }

  func set(_ key: String, to value: String) throws {
    try commit(CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: key), .set(.string(value)))]))
  }

  /// Changes all of these progress values in one commit.
  func change(_ changes: [String: CellDraft.Change]) throws {
    let cells = changes.map { CellDraft(CellKey(collection: "progress", key: $0.key), $0.value) }
    try commit(CommitDraft(cells: cells.sorted { $0.key < $1.key }))
  }

  private func commit(_ draft: CommitDraft) throws {
    var random = SystemRandomNumberGenerator()
    _ = try store.write { transaction in
      try DeviceCommit.apply(draft, now: 1_000, writer: store.writer, in: &transaction, using: &random)
    }
    sync.committed()
  }

  /// The bytes of each head of a slot, sorted by the heads' ids.
  func heads(of slot: String) throws -> [Data] {
    try store.read { transaction in
      try transaction.heads(of: slot).compactMap { id in
        try transaction.version(id).map { try transaction.plainBytes(of: $0.record) }
      }
    }
  }

  func headIDs(of slot: String) throws -> [VersionID] { try store.read { try $0.heads(of: slot) } }

  func cell(_ key: String) throws -> CellValue? {
    try store.read { try $0.cell(CellKey(collection: "progress", key: key))?.value }
  }

  func cells() throws -> [CellKey: CellState] {
    Dictionary(uniqueKeysWithValues: try store.read { try $0.cells(in: nil) }.map { ($0.key, $0.state) })
  }

  func count(_ key: String) throws -> UInt64 {
    guard case .counter(let entries)? = try cell(key) else { return 0 }
    return entries.values.reduce(0) { $0 + $1.plus }
  }

  /// Waits until `condition` holds.
  func until(_ what: String, _ condition: () throws -> Bool) async throws {
    try await TestSupport.until("\(what); the status is \(sync.status)", condition)
  }

  /// Syncs until it succeeds: a connection that died earlier is noticed only when a request fails.
  func retrySend() async {
    for _ in 0..<50 {
      do {
        try await sync.sync()
        return
      } catch {
        continue
      }
    }
    Issue.record("sending failed fifty times: \(sync.status)")
  }

  func close() async throws {
    await sync.stop()
    try store.close()
  }
}

/// Bytes that look like a save: compressible, and different for each seed.
func saveBytes(_ count: Int, seed: UInt64) -> Data {
  var state = seed
  var bytes = Array("save \(seed)\n".utf8)
  bytes.reserveCapacity(count + 64)
  while bytes.count < count {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    bytes += "item_".utf8
    for shift in stride(from: 60, to: 0, by: -4) {
      bytes.append(UInt8(ascii: "a") + UInt8(state >> UInt64(shift) & 15))
    }
    bytes.append(UInt8(ascii: "\n"))
  }
  return Data(bytes.prefix(count))
}
#endif
