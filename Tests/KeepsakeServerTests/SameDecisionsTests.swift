#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeServer

/// The same requests to the server's storage, of which only what they need is loaded, and to a container in memory.
@Suite("Decisions over rows and in memory") struct SameDecisionsTests {
  private static let player = ContainerID(high: 3, low: 4)

  private static func name(_ number: UInt64) -> ContentHash { ContentHash(of: Data("\(number)".utf8)) }

  /// One random request of a device, which may know anything of the container.
  private static func request(
    _ number: UInt64, _ cursor: Cursor, _ memory: MemoryContainer, using random: inout SeededGenerator
  ) -> ExchangeRequest {
    var request = ExchangeRequest(cursor: cursor, limit: [1, 3, 500][Int(random.next() % 3)])
    for index in 0..<(random.next() % 3) {
      let slot = "slot-\(random.next() % 3)"
      var covers = memory.heads(of: slot).filter { _ in random.next() % 4 != 0 }
      if random.next() % 5 == 0 { covers.append(VersionID(high: 9, low: random.next() % 40)) }
      let isDelete = random.next() % 6 == 0
      let contents = isDelete ? [] : (0..<(random.next() % 3)).map { _ in name(random.next() % 30) }
      let isKnown = random.next() % 3 == 0
      let id = VersionID(high: random.next() % 4 == 0 ? 9 : 7, low: isKnown ? number % 40 : number * 4 + index)
      request.versions.append(
        VersionRecord(
          id: id, slot: slot, covers: covers, contents: contents, length: 5,
          metadata: SaveMetadata(title: random.next() % 2 == 0 ? "Chapter" : nil), savedAtMilliseconds: 5,
          writer: WriterID(3), provisional: random.next() % 4 == 0, tombstone: isDelete))
    }
    for _ in 0..<(random.next() % 4) {
      let hash = random.next() % 30
      let base = random.next() % 2 == 0 ? random.next() % 30 : hash
      request.contents.append(
        EncodedContent(
          hash: name(hash), length: 5, base: base == hash ? nil : name(base),
          bytes: frameBytes(Int(random.next() % 900) + 1, seed: hash)))
    }
    for _ in 0..<(random.next() % 3) {
      let key = CellKey(collection: "progress", key: "\(random.next() % 6)")
      request.cells.append(CellUpdate(key: key, state: CellState(value: .max(.int(Int64(random.next() % 50))))))
    }
    if random.next() % 8 == 0 { request.damaged = [name(random.next() % 30)] }
    if random.next() % 6 == 0 {
      request.part = OfferPart(
        offer: OfferID(high: 1, low: random.next() % 2), number: Int(random.next() % 3), isLast: random.next() % 2 == 0)
    }
    return request
  }

  /// One random request of a device that plays: it mostly saves what is new in place of what it knows.
  private static func save(
    _ number: UInt64, _ cursor: Cursor, _ memory: MemoryContainer, using random: inout SeededGenerator
  ) -> ExchangeRequest {
    var request = ExchangeRequest(cursor: cursor, limit: 500)
    for index in 0..<(1 + random.next() % 2) {
      let slot = "slot-\(random.next() % 3)"
      var covers = memory.heads(of: slot)
      if random.next() % 16 == 0 { covers.removeLast(min(1, covers.count)) }
      if random.next() % 32 == 0 { covers.append(VersionID(high: 7, low: random.next() % (number * 4))) }
      // Some of these are here, or were.
      let hash = random.next() % 8 == 0 ? random.next() % (number * 4) : number * 4 + index
      let base = random.next() % 2 == 0 ? covers.first.flatMap { memory.version($0)?.record.contents.first } : nil
      if random.next() % 16 != 0 {
        request.contents.append(
          EncodedContent(
            hash: name(hash), length: 5, base: base == name(hash) ? nil : base,
            bytes: frameBytes(Int(random.next() % 400) + 1, seed: hash)))
      }
      let id = random.next() % 16 == 0 ? random.next() % (number * 4) : number * 4 + index
      request.versions.append(
        VersionRecord(
          id: VersionID(high: 7, low: id), slot: slot, covers: covers, contents: [name(hash)], length: 5,
          savedAtMilliseconds: 5, writer: WriterID(3), provisional: false, tombstone: false))
    }
    for _ in 0..<(random.next() % 2) {
      let key = CellKey(collection: "progress", key: "\(random.next() % 6)")
      request.cells.append(CellUpdate(key: key, state: CellState(value: .max(.int(Int64(random.next() % 50))))))
    }
    if random.next() % 64 == 0 { request.damaged = [name(random.next() % (number * 4))] }
    return request
  }

  @Test("750 random exchanges get the same responses, and leave the same changes", arguments: [1, 2] as [UInt64])
  func same(seed: UInt64) async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let storage = try SQLiteCloudStorage(
        database: folder.appendingPathComponent("cloud.sqlite"), contents: contents, clock: { 5 })
      for device in Self.devices(of: Self.player) { try await storage.recordDevice(device) }
      let memory = try await Self.play(storage, Self.player, seed: seed)
      let stored = try await storage.read(Self.player) { try ($0.changes(after: 0, limit: 9_999), $0.recountedBytes()) }
      #expect(stored.0 == memory.changes(after: 0, limit: 9_999) && stored.1 == memory.usedBytes())
      try await storage.close()
    }
  }

  static func devices(of container: ContainerID) -> [DeviceRecord] {
    (0..<3 as Range<UInt64>).map { number in
      let identity = DeviceIdentity(
        device: DeviceID(high: 1, low: number), player: PlayerID(high: 2, low: 2), container: container,
        app: AppID(ofKey: "app"))
      return DeviceRecord(identity: identity, name: "", createdMilliseconds: 5, seenMilliseconds: 5)
    }
  }

  /// Makes 750 random exchanges with a container that nothing was stored in, and with one in memory.
  ///
  /// - Parameter isPlaying: Whether the devices save as in a game, one for a while before another one does.
  /// - Returns: The one in memory.
  static func play(
    _ storage: some DecidingStorage, _ player: ContainerID, seed: UInt64, isPlaying: Bool = false
  ) async throws -> MemoryContainer {
    let devices = devices(of: player).map(\.identity.device)
    var memory = MemoryContainer(epoch: 0)
    // What the server has of the devices, which decides what goes when there is no room.
    let lastVisit = 5 + ServerLimits.visitMilliseconds
    for device in devices { for now in [5, lastVisit] { memory.recordVisit(of: device, now: now) } }
    var random = SeededGenerator(seed: seed)
    var cursors = [Cursor](repeating: .start, count: devices.count)
    var outcomes: Set<String> = []
    var playing = 0
    for number in 1...750 as ClosedRange<UInt64> {
      if !isPlaying || random.next() % 16 == 0 { playing = Int(random.next() % UInt64(devices.count)) }
      let index = playing
      if random.next() % 20 == 0 { cursors[index] = .start }
      let make = isPlaying ? Self.save : Self.request
      let request = make(number, cursors[index], memory, &random)
      let quota: Int64? = isPlaying ? (number < 650 ? 2_000_000 : 90_000) : random.next() % 2 == 0 ? 9_000 : nil
      let source = SeededGenerator(seed: random.next())
      var marks = source
      let expected: Result<ExchangeResponse, ExchangeError>
      do {
        var next = memory
        expected = .success(
          try CloudAcceptance.exchange(
            request, from: devices[index], now: 5, quota: quota, in: &next, using: &marks))
        memory = next
      } catch let error as ExchangeError {
        expected = .failure(error)
      }
      let found: Result<ExchangeResponse, ExchangeError>
      do {
        let reads = try CloudAcceptance.reads(of: request, from: devices[index], hasQuota: quota != nil)
        found = .success(
          try await storage.decide(on: player, reading: reads) { container in
            var marks = source
            return try CloudAcceptance.exchange(
              request, from: devices[index], now: 5, quota: quota, in: &container, using: &marks)
          })
      } catch let error as ExchangeError {
        found = .failure(error)
      }
      try #require("\(found)" == "\(expected)", "seed \(seed), exchange \(number): \(request)")
      if case .success(let response) = expected {
        cursors[index] = response.restart ? .start : response.cursor
        outcomes.insert("\(response.outcome.map { "\($0)".prefix(6) } ?? "none")")
      }
    }
    // All kinds of outcomes came up; who plays sends something each time, and no parts.
    #expect(outcomes.count == (isPlaying ? 3 : 5), "\(outcomes)")
    return memory
  }
}
#endif
