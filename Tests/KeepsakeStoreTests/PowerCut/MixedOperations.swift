import Foundation
import GRDB
import KeepsakeReplication

@testable import KeepsakeStore

/// What a game, its sync and the store's own maintenance do to a store in turn, from one seed.
enum MixedOperation: Sendable {
  /// A commit as the game makes it: saves, deletes, values, money, all or nothing.
  case commit(MixedCommit)
  /// The next commits are submitted before the first of them is waited for, so that they share a transaction.
  case burst([MixedCommit])
  /// The cloud acknowledges everything that waited for it.
  case settle
  /// A save of another device arrives beside the newest one of this device: a conflict, until the next save.
  case receive(slot: String, bytes: Data, number: UInt64)
  /// A page of changes is staged, and the staged changes are removed.
  case stage(number: UInt64)
  case clearStaged
  /// The write-ahead log is moved into the database; `true` truncates it, too.
  case checkpoint(truncates: Bool)
  /// The game ends and is started again.
  case reopen

  /// The number of operations of a run that this counts as.
  var count: Int { if case .burst(let commits) = self { commits.count } else { 1 } }
}

/// One commit of a game, made from random numbers before the run, so that it is the same in each run.
struct MixedCommit: Sendable {
  struct Save: Sendable {
    var number: UInt64
    var slot: String
    /// Nil for a delete.
    var bytes: Data?
  }
  var number: UInt64
  var saves: [Save] = []
  var cells: [CellDraft] = []
  var wallet: [WalletOperation] = []

  var contents: [SaveBytes] {
    saves.compactMap { save in save.bytes.map { (save.slot, $0) } }
  }

  /// Applies the commit within the store's transaction.
  func apply(to transaction: inout StoreTransaction, _ kept: [PreparedSave]) throws {
    // Preferences are changed, too; each is removed again now and then.
    if number % 3 == 0 { try transaction.setPreference(Data("choice \(number)".utf8), named: "choice \(number % 9)") }
    if number % 13 == 0 { try transaction.removePreference(named: "choice \(number % 9)") }
    var contents = kept.makeIterator()
    let saves = self.saves.map { save in
      let content = save.bytes == nil ? nil : contents.next()
      return SaveDraft(
        id: id(save.number), slot: save.slot, parents: .everyHead, contents: content?.hashes ?? [],
        length: content?.length ?? 0, metadata: SaveMetadata(title: "save \(save.number)"),
        savedAtMilliseconds: Int64(save.number), tombstone: save.bytes == nil)
    }
    var random = SeededRandom(seed: number)
    try DeviceCommit.apply(
      CommitDraft(saves: saves, cells: cells, wallet: wallet), now: Int64(number), writer: WriterID(1),
      in: &transaction,
      using: &random)
  }
}

extension MixedOperation {
  /// `count` operations. The same seed gives the same ones.
  static func run(of count: Int, seed: UInt64) -> [MixedOperation] {
    var maker = MixedOperationMaker(random: SeededRandom(seed: seed))
    var operations: [MixedOperation] = []
    var made = 0
    while made < count {
      let next = maker.next(atMost: count - made)
      made += next.count
      operations.append(next)
    }
    return operations
  }
}

/// Makes operations one after the other, and remembers the worlds that they save.
private struct MixedOperationMaker {
  /// The last slot has large saves of incompressible bytes: full frames, deltas, and logs of many pages.
  private static let slots = ["main", "auto", "quick", "options", "museum"]
  private static let largeBytes = 40_000

  var random: SeededRandom
  private var worlds: [String: Data] = [:]
  private var number: UInt64 = 0
  private var coins: Int64 = 0

  init(random: SeededRandom) { self.random = random }

  mutating func next(atMost limit: Int) -> MixedOperation {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<42: return .commit(commit { $0.save() })
    case 42..<52:
      let count = min(limit, Int.random(in: 2...6, using: &random))
      return .burst((0..<count).map { _ in commit { $0.save() } })
    case 52..<64: return .commit(commit { $0.checkpoint() })
    case 64..<71: return .commit(commit { maker in MixedCommit(number: maker.number, cells: maker.cells()) })
    case 71..<76: return .commit(commit { maker in MixedCommit(number: maker.number, wallet: maker.money()) })
    case 76..<80:
      return .commit(
        commit { maker in
          let slot = maker.slot()
          maker.worlds[slot] = nil
          return MixedCommit(number: maker.number, saves: [.init(number: maker.nextNumber(), slot: slot, bytes: nil)])
        })
    case 80..<84: return .settle
    case 84..<87:
      let slot = slot()
      return .receive(slot: slot, bytes: random.bytes(300), number: nextNumber())
    case 87..<89: return .stage(number: nextNumber())
    case 89..<91: return .clearStaged
    case 91..<96: return .checkpoint(truncates: false)
    case 96..<98: return .checkpoint(truncates: true)
    default: return .reopen
    }
  }

  private mutating func commit(_ make: (inout Self) -> MixedCommit) -> MixedCommit {
    _ = nextNumber()
    return make(&self)
  }

  private mutating func nextNumber() -> UInt64 {
    number += 1
    return number
  }

  private mutating func slot() -> String { Self.slots.randomElement(using: &random) ?? "main" }

  private mutating func save() -> MixedCommit {
    let slot = slot()
    return MixedCommit(number: number, saves: [.init(number: nextNumber(), slot: slot, bytes: world(of: slot))])
  }

  /// Several slots, values and money at once.
  private mutating func checkpoint() -> MixedCommit {
    var saves: [MixedCommit.Save] = []
    for slot in Self.slots.shuffled(using: &random).prefix(3) {
      saves.append(.init(number: nextNumber(), slot: slot, bytes: world(of: slot)))
    }
    return MixedCommit(number: number, saves: saves, cells: cells(), wallet: money())
  }

  /// The slot's world a little later.
  private mutating func world(of slot: String) -> Data {
    let isLarge = slot == Self.slots.last
    var world = worlds[slot] ?? random.bytes(isLarge ? Self.largeBytes : 900)
    for _ in 0..<4 {
      let place = Int.random(in: 0..<(world.count - 16), using: &random)
      world.replaceSubrange(place..<(place + 16), with: random.bytes(16))
    }
    worlds[slot] = world
    return world
  }

  private mutating func cells() -> [CellDraft] {
    let level = Int64(number)
    return [
      CellDraft(CellKey(collection: "progress", key: "level"), .max(.int(level))),
      CellDraft(CellKey(collection: "progress", key: "seen"), .insert([.string("place \(level % 40)")])),
      CellDraft(CellKey(collection: "progress", key: "steps"), .add(plus: 3, minus: 1)),
      CellDraft(CellKey(collection: "progress", key: "hat \(level % 7)"), .set(.string("hat \(level)"))),
    ]
  }

  private mutating func money() -> [WalletOperation] {
    let earned = Int64.random(in: 1...50, using: &random)
    coins += earned
    var operations = [
      WalletOperation(id: OperationID(using: &random), kind: .earn, currency: "coins", amount: earned, reason: "found")
    ]
    if coins > 60 {
      coins -= 40
      operations.append(
        WalletOperation(id: OperationID(using: &random), kind: .spend, currency: "coins", amount: 40, reason: "hat"))
    }
    return operations
  }
}
