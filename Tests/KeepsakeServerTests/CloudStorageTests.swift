#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// What a storage has to be, whatever it keeps things in.
@Suite("Each storage of a cloud", .hangLimit)
struct CloudStorageTests {
  private func version(_ number: UInt64, slot: String, covers: [UInt64] = []) -> VersionRecord {
    VersionRecord(
      id: VersionID(high: 1, low: number), slot: slot, covers: covers.map { VersionID(high: 1, low: $0) }, contents: [],
      length: 0, savedAtMilliseconds: 5, writer: WriterID(3), provisional: false)
  }

  @Test(
    "an export fails as `retired` if the player's data is deleted between two pages",
    arguments: TestStorage.all)
  func exportOfDeleted(kind: TestStorage) async throws {
    try await kind.with { storage async throws in
      let container = ContainerID(high: 1, low: 1)
      try await storage.decide(on: container) { container throws in
        container.advance(to: .init(epoch: 1, seq: 1, mark: 11))
        try container.putVersion(SequencedVersion(record: version(1, slot: "a"), seq: 1))
      }
      #expect(try await storage.exported(.changes(after: 0), of: container).lines.count == 1)
      try await storage.delete(container, now: 5)
      let places: [PlayerExport.Position] = [
        .changes(after: 0), .contents(after: nil), .decisions(after: nil), .packed(after: nil), .claims(after: nil),
        .bank,
      ]
      for place in places {
        let error = await #expect(throws: APIError.self) { _ = try await storage.exported(place, of: container) }
        #expect(error?.code == .retired)
      }
    }
  }

  @Test(
    "a request that arrived before its player's data was deleted is refused after that, and leaves nothing behind",
    arguments: TestStorage.all)
  func requestOfDeleted(kind: TestStorage) async throws {
    try await kind.with { storage async throws in
      let (deleted, other) = (ContainerID(high: 1, low: 1), ContainerID(high: 1, low: 2))
      try await storage.delete(deleted, now: 5)
      let error = await #expect(throws: APIError.self) {
        try await storage.decide(on: deleted) { $0.advance(to: .init(epoch: 1, seq: 1, mark: 11)) }
      }
      #expect(error?.code == .retired)
      #expect(try await storage.position(of: deleted).seq == 0)
      try await storage.decide(on: other) { $0.advance(to: .init(epoch: 1, seq: 1, mark: 11)) }
      #expect(try await storage.position(of: other).seq == 1)
    }
  }

  @Test(
    "removed devices and deleted players get no pairing code, and their earlier codes are no longer valid",
    arguments: TestStorage.all)
  func codesOfRemoved(kind: TestStorage) async throws {
    try await kind.with { storage async throws in
      let (container, app) = (ContainerID(high: 1, low: 1), AppID(bytes: Data(repeating: 7, count: 16)))
      let player = PlayerID(high: 2, low: 2)
      func device(_ number: UInt64) -> DeviceID { DeviceID(high: 3, low: number) }
      func ask(_ number: UInt64) async throws {
        try await storage.putPairing(
          Pairing(
            code: Data([UInt8(number)]), scope: app, player: player, container: container, expiresMilliseconds: 100),
          for: device(number), now: 1)
      }
      func join(_ code: UInt8, as number: UInt64) async throws -> DeviceIdentity? {
        try await storage.join(Data([code]), by: EntryRight(app), as: device(number), name: "new", now: 2)
      }
      for number in 1...2 as ClosedRange<UInt64> {
        let identity = DeviceIdentity(device: device(number), player: player, container: container, app: app)
        try await storage.recordDevice(
          DeviceRecord(identity: identity, name: "old", createdMilliseconds: 1, seenMilliseconds: 1))
      }
      try await ask(1)
      _ = try await storage.retire(device(1), of: container, now: 1)
      #expect(try await join(1, as: 8) == nil)
      await #expect(throws: APIError.self) { try await ask(1) }
      #expect(try await join(1, as: 8) == nil)
      try await ask(2)
      #expect(try await join(2, as: 9)?.player == player)
      #expect(try await storage.devices(of: container).map(\.identity.device) == [device(2), device(9)])
      try await storage.delete(container, now: 1)
      await #expect(throws: APIError.self) { try await ask(2) }
      #expect(try await join(2, as: 10) == nil)
      #expect(try await storage.devices(of: container).isEmpty)
    }
  }

  @Test(
    "a player's data is never visible in another player's container",
    arguments: TestStorage.all)
  func containersApart(kind: TestStorage) async throws {
    try await kind.with { storage async throws in
      let (first, second) = (ContainerID(high: 1, low: 1), ContainerID(high: 1, low: 2))
      let key = CellKey(collection: "progress", key: "level")
      try await storage.decide(on: first) { container throws in
        container.advance(to: .init(epoch: 1, seq: 1, mark: 11))
        try container.setCell(
          SequencedCell(update: CellUpdate(key: key, state: CellState(value: .max(.int(5)))), seq: 1))
        container.advance(to: .init(epoch: 1, seq: 2, mark: 12))
        try container.putVersion(SequencedVersion(record: version(1, slot: "a"), seq: 2))
        container.markCovered(VersionID(high: 9, low: 9))
        try container.putContent(
          EncodedContent(hash: ContentHash(of: Data()), length: 0, base: nil, bytes: Data([1])))
      }
      try await storage.decide(on: second) { container throws in
        #expect(try container.cell(key) == nil)
        #expect(try container.version(VersionID(high: 1, low: 1)) == nil)
        #expect(try container.heads(of: "a").isEmpty)
        #expect(try !container.isCovered(VersionID(high: 9, low: 9)))
        #expect(try !container.hasContent(ContentHash(of: Data())))
        #expect(try container.changes(after: 0, limit: 10).isEmpty)
        #expect(container.position().seq == 0)
        #expect(try container.mark(of: 1) == nil)
        #expect(try container.mark(of: 0) == 0)
      }
      #expect(try await storage.position(of: first) == .init(epoch: 1, seq: 2, mark: 12))
    }
  }

  @Test(
    "keys that differ only after a NUL are distinct, and numbers keep all of their bits",
    arguments: TestStorage.all)
  func bytesAndBits(kind: TestStorage) async throws {
    try await kind.with { storage async throws in
      let id = ContainerID(high: .max, low: .max)
      let keys = ["a\u{0}b", "a\u{0}c", "a", ""].map { CellKey(collection: "c\u{0}", key: $0) }
      try await storage.decide(on: id) { container throws in
        for (index, key) in keys.enumerated() {
          let seq = UInt64(index) + 1
          container.advance(to: .init(epoch: .max, seq: seq, mark: .max - seq))
          let state = CellState(generation: .max, value: .max(.int(Int64(index))))
          try container.setCell(SequencedCell(update: CellUpdate(key: key, state: state), seq: seq))
        }
      }
      try await storage.decide(on: id) { container throws in
        for (index, key) in keys.enumerated() {
          let cell = try #require(try container.cell(key))
          #expect(cell.update.state.value == .max(.int(Int64(index))))
          #expect(cell.update.state.generation == .max)
          #expect(try container.mark(of: UInt64(index) + 1) == .max - UInt64(index) - 1)
        }
        #expect(container.position().epoch == .max)
        #expect(try container.changes(after: 0, limit: 10).count == 4)
      }
    }
  }

  @Test(
    "heads are the versions that no other version covers, in whatever order they arrive",
    arguments: TestStorage.all)
  func heads(kind: TestStorage) async throws {
    try await kind.with { storage async throws in
      try await storage.decide(on: ContainerID(high: 0, low: 0)) { container throws in
        for number in (1...3 as ClosedRange<UInt64>) {
          container.advance(to: .init(epoch: 1, seq: number, mark: number))
          try container.putVersion(SequencedVersion(record: version(number, slot: "s"), seq: number))
        }
        container.markCovered(VersionID(high: 1, low: 2))
      }
      try await storage.decide(on: ContainerID(high: 0, low: 0)) { container throws in
        #expect(try container.heads(of: "s") == [VersionID(high: 1, low: 1), VersionID(high: 1, low: 3)])
        // Covered before it arrives.
        container.markCovered(VersionID(high: 1, low: 4))
      }
      try await storage.decide(on: ContainerID(high: 0, low: 0)) { container throws in
        container.advance(to: .init(epoch: 1, seq: 4, mark: 4))
        try container.putVersion(SequencedVersion(record: version(4, slot: "s"), seq: 4))
      }
      try await storage.decide(on: ContainerID(high: 0, low: 0)) { container throws in
        #expect(try container.heads(of: "s").count == 2)
        #expect(try container.version(VersionID(high: 1, low: 4))?.seq == 4)
        // Covered once it is here.
        container.markCovered(VersionID(high: 1, low: 1))
      }
      try await storage.decide(on: ContainerID(high: 0, low: 0)) { container throws in
        #expect(try container.heads(of: "s") == [VersionID(high: 1, low: 3)])
      }
    }
  }

  @Test(
    "changes are returned in the order of their seqs, cells and versions together, page by page",
    arguments: TestStorage.all)
  func changes(kind: TestStorage) async throws {
    try await kind.with { storage async throws in
      try await storage.decide(on: ContainerID(high: 0, low: 0)) { container throws in
        for seq in (1...9 as ClosedRange<UInt64>) {
          container.advance(to: .init(epoch: 1, seq: seq, mark: seq))
          if seq % 2 == 0 {
            try container.putVersion(SequencedVersion(record: version(seq, slot: "s"), seq: seq))
          } else {
            let key = CellKey(collection: "p", key: "\(seq % 4)")
            try container.setCell(
              SequencedCell(update: CellUpdate(key: key, state: CellState(value: .max(.int(Int64(seq))))), seq: seq))
          }
        }
      }
      try await storage.decide(on: ContainerID(high: 0, low: 0)) { container throws in
        // Cells 1 and 3 were written again by 5, 7 and 9.
        #expect(try container.changes(after: 0, limit: 100).map(\.seq) == [2, 4, 6, 7, 8, 9])
        #expect(try container.changes(after: 4, limit: 2).map(\.seq) == [6, 7])
        #expect(try container.changes(after: .max, limit: 2).isEmpty)
        #expect(try container.changes(after: 0, limit: -1).isEmpty)
      }
    }
  }

  @Test(
    "the bank's state, decisions and paid claims are read as they were written",
    arguments: TestStorage.all)
  func bank(kind: TestStorage) async throws {
    try await kind.with { storage async throws in
      let (id, chain) = (ContainerID(high: 0, low: 0), ChainID(high: 5, low: 6))
      let operation = WalletOperation(
        id: OperationID(high: 1, low: 2), kind: .earn, currency: "gems", amount: 3, reason: "quest")
      var bank = BankState()
      bank.pool["gems"] = .max
      try await storage.decide(on: id) { [bank] container throws in
        #expect(try container.bank() == BankState())
        container.setBank(bank)
        #expect(try container.bank() == bank)
        #expect(try container.decision(on: operation.id) == nil)
        #expect(try !container.isClaimPaid("starter"))
      }
      try await storage.decide(on: id) { container throws in
        container.advance(to: .init(epoch: 4, seq: 1, mark: 9))
        container.recordDecision(.declined, on: operation, of: chain)
        try container.markClaimPaid("starter", nil)
      }
      try await storage.decide(on: id) { [bank] container throws in
        #expect(try container.bank() == bank)
        let decided = DecidedOperation(verdict: .declined, fingerprint: operation.fingerprint, chain: chain)
        #expect(try container.decision(on: operation.id) == decided)
        #expect(try container.decidedOperation(operation.id) == operation)
        #expect(try container.isClaimPaid("starter"))
      }
    }
  }

  @Test(
    "goods are read in the order of their changes, whole changes at a time, and closed chains as they were written",
    arguments: TestStorage.all)
  func goodsAndClosedChains(kind: TestStorage) async throws {
    try await kind.with { storage async throws in
      let id = ContainerID(high: 0, low: 0)
      let (hat, sword, cap) = (
        NumberedGood(name: "hat", count: 1, number: 2), NumberedGood(name: "sword", count: 2, number: 2),
        NumberedGood(name: "cap", count: 5, number: 3)
      )
      @Sendable func check(_ container: SnapshotContainer) throws {
        #expect(try container.goods(changedAfter: 0, limit: 1) == [hat, sword])
        #expect(try container.goods(changedAfter: 0, limit: 9) == [hat, sword, cap])
        #expect(try container.goods(changedAfter: 2, limit: 9) == [cap])
        #expect(try container.goods(changedAfter: 3, limit: 9).isEmpty)
      }
      let chains = [ChainID(high: 5, low: 6): nil, ChainID(high: 5, low: 7): ChainID(high: 5, low: 5)]
      func closed(_ id: ChainID) -> BankState.ClosedChain {
        BankState.ClosedChain(head: ChainHead(emptyChain: id), follows: chains[id] ?? nil)
      }
      let changes: [(String, Int64, UInt64)] = [("cap", 1, 1), ("sword", 2, 2), ("hat", 1, 2), ("cap", 4, 3)]
      for part in [changes[..<2], changes[2...]] {
        try await storage.decide(on: id) { container throws in
          for (name, count, number) in part { try container.addGood(name, count, number: number) }
          if number(of: part) == 3 { try check(container) }
        }
      }
      try await storage.decide(on: id) { try check($0) }
      var reads = ReadSet()
      reads.bank.goodsAfter = BankReads.Range(after: 0, limit: 1)
      #expect(try await storage.load(reads, of: id).goodsAfter == [hat, sword], "no more is read than is asked for")
      for chain in chains.keys {
        let kept = closed(chain)
        try await storage.decide(on: id) { container throws in
          #expect(try container.closedChain(chain) == nil)
          container.recordClosedChain(kept, chain)
        }
        #expect(try await storage.decide(on: id) { try $0.closedChain(chain) } == kept)
      }
    }
  }

  private func number(of changes: ArraySlice<(String, Int64, UInt64)>) -> UInt64 { changes.last?.2 ?? 0 }
}
#endif
