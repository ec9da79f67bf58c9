import Foundation
import KeepsakeReplication

@testable import KeepsakeStore

/// A game whose every commit follows from its number alone, so that what a store must contain is known: saves in four
/// slots in turn, checkpoints of all of them, deletes, and values that count the commits.
enum KillWorld {
  static let slots = ["main", "auto", "quick", "options"]
  static let level = CellKey(collection: "progress", key: "level")
  static let commits = CellKey(collection: "progress", key: "commits")
  static let writer = WriterID(1)
  /// Large enough that a delta against the previous save is worthwhile.
  private static let worldBytes = 12_000

  private static let bases: [Data] = slots.indices.map { index in
    var random = SeededRandom(seed: UInt64(index))
    return (0..<(worldBytes / 8)).reduce(into: Data()) { bytes, _ in
      withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) }
    }
  }

  /// A slot's bytes as commit `number` saves them.
  static func world(_ slot: String, at number: UInt64) -> Data {
    var bytes = bases[slots.firstIndex(of: slot) ?? 0]
    for place in 0..<16 as Range<UInt64> {
      let offset = Int((number &* 7_919 &+ place &* 911) % UInt64(worldBytes - 8))
      withUnsafeBytes(of: number) { bytes.replaceSubrange(offset..<(offset + 8), with: $0) }
    }
    return bytes
  }

  /// The slots that commit `number` saves.
  static func saved(by number: UInt64) -> [String] {
    switch number % 10 {
    case 0..<6: [slots[Int(number % 4)]]
    case 6, 7: slots
    default: []
    }
  }

  /// The slot that commit `number` deletes.
  static func deleted(by number: UInt64) -> String? { number % 10 == 8 ? slots[Int(number / 10 % 4)] : nil }

  /// Submits commit `number`, with contents, versions, outbox and values in one transaction.
  static func submit(_ number: UInt64, to store: Store) throws -> PendingCommit<Void> {
    let saved = saved(by: number)
    let contents = saved.map { (slot: $0, bytes: world($0, at: number)) }
    return try store.submit(contents) { transaction, kept in
      var saves: [SaveDraft] = []
      for (index, (slot, content)) in zip(saved, kept).enumerated() {
        saves.append(
          SaveDraft(
            id: name(number, index), slot: slot, parents: .everyHead, contents: content.hashes, length: content.length,
            savedAtMilliseconds: Int64(number)))
      }
      if let slot = deleted(by: number) {
        saves.append(
          SaveDraft(
            id: name(number, 0), slot: slot, parents: .everyHead, contents: [], length: 0,
            savedAtMilliseconds: Int64(number),
            tombstone: true))
      }
      let cells = [CellDraft(level, .max(.int(Int64(number)))), CellDraft(commits, .add(plus: 1, minus: 0))]
      var random = SeededRandom(seed: number)
      try DeviceCommit.apply(
        CommitDraft(saves: saves, cells: cells), now: Int64(number), writer: writer, in: &transaction, using: &random)
    }
  }

  private static func name(_ number: UInt64, _ index: Int) -> VersionID { VersionID(high: UInt64(index), low: number) }

  /// The number of the last commit in a store.
  static func last(in transaction: StoreTransaction) throws -> UInt64 {
    guard case .max(.int(let number)) = try transaction.cell(level)?.value else { return 0 }
    return UInt64(number)
  }

  /// The problems of a store, empty if there are none: everything of its last commit and of those before has to be
  /// there, once.
  static func problems(in transaction: StoreTransaction) throws -> [String] {
    var problems: [String] = []
    let last = try last(in: transaction)
    var counted: UInt64 = 0
    if case .counter(let entries) = try transaction.cell(commits)?.value { counted = entries[writer]?.plus ?? 0 }
    if counted != last { problems.append("commit \(last) is there, but \(counted) were counted") }
    for slot in slots {
      let heads = try transaction.heads(of: slot)
      let newest = (0..<min(last, 60)).lazy.map { last - $0 }.first {
        saved(by: $0).contains(slot) || deleted(by: $0) == slot
      }
      guard let newest else {
        if !heads.isEmpty { problems.append("\(slot) has a save that was never made") }
        continue
      }
      guard heads.count == 1, heads[0].low == newest, let version = try transaction.version(heads[0]) else {
        problems.append("\(slot) has the heads \(heads) instead of \(newest)")
        continue
      }
      if deleted(by: newest) == slot {
        if !version.record.tombstone { problems.append("\(slot) is there although commit \(newest) deleted it") }
      } else if try transaction.plainContent(version.record.contents[0]) != world(slot, at: newest) {
        problems.append("\(slot) holds other bytes than commit \(newest) saved")
      }
      for version in try transaction.history(of: slot) {
        for hash in version.record.contents { _ = try transaction.plainContent(hash) }
      }
    }
    return problems
  }
}
