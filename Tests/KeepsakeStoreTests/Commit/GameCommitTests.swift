import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

extension GameCommit {
  /// A save of a game that loaded `loaded` once and has continued since.
  init(_ number: UInt64, slot: String = "main", loaded: [VersionID] = [], spending gems: Int64 = 0) {
    let save = SaveDraft(
      id: id(number), slot: slot, parents: .game(SaveOrigin(load: 1, loaded: loaded)),
      content: .bytes(Data("save \(number)".utf8)),
      savedAtMilliseconds: Int64(number))
    let spend = WalletOperation(
      id: OperationID(high: 0, low: number), kind: .spend, currency: "gems", amount: gems, reason: "sword", goods: [],
      madeAtMilliseconds: 0)
    self.init(saves: [save], wallet: gems > 0 ? [spend] : [], now: Int64(number))
  }
}

/// How commits of a game affect the next ones, also if some of them fail.
@Suite struct GameCommitTests {
  let folder: TemporaryFolder
  let store: Store

  init() throws {
    folder = try TemporaryFolder()
    store = try Store.open(at: folder.store)
  }

  /// Makes the commits that `body` submits share one transaction.
  private func together(_ body: () throws -> Void) throws {
    let gate = Gate()
    let blocker = try store.submit { _, _ in gate.pass() }
    gate.waitForArrival()
    defer { gate.open() }
    try body()
    _ = blocker
  }

  private func covers(_ number: UInt64) throws -> [VersionID]? {
    try store.read { try $0.version(id(number))?.record.covers }
  }

  private func heads(_ slot: String) throws -> [VersionID] { try store.read { try $0.heads(of: slot) } }

  @Test("each save of a batch replaces the one before it, though the game loaded none of them")
  func goesOn() throws {
    defer { try? store.close() }
    var pending: [PendingCommit<GameCommit.Outcome>] = []
    try together { for number in UInt64(1)...3 { pending.append(try store.submit(GameCommit(number))) } }
    let outcomes = try pending.map { try $0.wait() }
    #expect(outcomes.map { $0.versions.map(\.record.id) } == [[id(1)], [id(2)], [id(3)]])
    #expect(outcomes.map { $0.lineage.newest(in: "main") } == [id(1), id(2), id(3)])
    #expect(try (covers(2), covers(3)) == ([id(1)], [id(2)]))
    #expect(try heads("main") == [id(3)])
  }

  @Test(
    "a commit that fails within a batch leaves nothing behind, and the next save of its slot replaces the one before it"
  )
  func failsInTheMiddle() throws {
    defer { try? store.close() }
    var pending: [PendingCommit<GameCommit.Outcome>] = []
    try together {
      pending.append(try store.submit(GameCommit(1)))
      // Its save is applied before its spending is refused.
      pending.append(try store.submit(GameCommit(2, spending: 5)))
      pending.append(try store.submit(GameCommit(3)))
    }
    _ = try pending[0].wait()
    #expect(throws: WalletError.self) { try pending[1].wait() }
    #expect(try pending[2].wait().lineage.newest(in: "main") == id(3))
    #expect(try covers(2) == nil)
    #expect(try covers(3) == [id(1)])
    #expect(try heads("main") == [id(3)])
    _ = try store.submit(GameCommit(4)).wait()
    #expect(try heads("main") == [id(4)])
  }

  @Test("after a first save that fails, the next save replaces what was loaded")
  func failsFirst() throws {
    defer { try? store.close() }
    try store.save(Data("older".utf8), as: 1)
    #expect(throws: WalletError.self) { try store.submit(GameCommit(2, loaded: [id(1)], spending: 5)).wait() }
    let outcome = try store.submit(GameCommit(3, loaded: [id(1)])).wait()
    #expect(outcome.versions[0].record.covers == [id(1)])
    #expect(try heads("main") == [id(3)])
  }

  @Test("waiting commits share one transaction: when the first is reported, the last is in the store")
  func sharesTransaction() throws {
    defer { try? store.close() }
    let known = Shared<[Int]>([])
    var pending: [PendingCommit<GameCommit.Outcome>] = []
    try together {
      for number in UInt64(1)...3 {
        pending.append(
          try store.submit(
            GameCommit(number, slot: "slot \(number)"),
            finished: { [store] _ in
              do { try known.value.append(store.read { try $0.slots().count }) } catch { Issue.record("\(error)") }
            }))
      }
    }
    for commit in pending { _ = try commit.wait() }
    #expect(known.value == [3, 3, 3])
  }

  @Test("results are reported in the order of the commits, including failed ones")
  func reportsInOrder() throws {
    defer { try? store.close() }
    let reported = Shared<[UInt64]>([])
    var pending: [PendingCommit<GameCommit.Outcome>] = []
    try together {
      for number in UInt64(1)...6 {
        let commit = GameCommit(number, slot: "slot \(number)", spending: number % 2 == 0 ? 5 : 0)
        pending.append(try store.submit(commit, finished: { _ in reported.value.append(number) }))
      }
    }
    for (index, commit) in pending.enumerated() {
      if index % 2 == 1 { #expect(throws: WalletError.self) { try commit.wait() } } else { _ = try commit.wait() }
    }
    #expect(reported.value == [1, 2, 3, 4, 5, 6])
  }

  @Test("a save in the same transaction in which its slot becomes local continues from the slot's local version")
  func goesOnFromSubstitute() throws {
    defer { try? store.close() }
    _ = try store.submit(GameCommit(1)).wait()
    var pending: [PendingCommit<GameCommit.Outcome>] = []
    try together {
      _ = try store.submit(SlotMove(of: "main", .leave(removing: false), now: 2))
      pending.append(try store.submit(GameCommit(2)))
    }
    let save = try #require(try pending[0].wait().versions.first?.record)
    #expect(save.slot == SlotKey.localSave("main").text)
    let replaced = try store.read { transaction in try save.covers.compactMap { try transaction.version($0)?.record } }
    #expect(replaced.map(\.slot) == [save.slot] && replaced.map(\.contents) == [[ContentHash(of: Data("save 1".utf8))]])
    #expect(try heads(save.slot) == [id(2)] && heads("main") == [id(1)])
  }

  @Test("a slot in conflict can't become local, and a save after the attempt covers what it would have covered before")
  func refusesToLeave() throws {
    defer { try? store.close() }
    _ = try store.submit(GameCommit(1)).wait()
    try store.write { try $0.put(9, [PreparedSave(hashes: [$0.keepContent(Data("theirs".utf8))], length: 6)]) }
    #expect(throws: CommitError.inConflict("main")) {
      try store.submit(SlotMove(of: "main", .leave(removing: false), now: 2)).wait()
    }
    let outcome = try store.submit(GameCommit(2)).wait()
    #expect(outcome.versions[0].record.slot == "main" && outcome.versions[0].record.covers == [id(1)])
    #expect(try heads("main") == [id(2), id(9)])
  }
}
