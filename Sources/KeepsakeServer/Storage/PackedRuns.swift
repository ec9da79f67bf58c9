#if Cloud
import Foundation
import KeepsakeReplication

/// The rows with a container's packed decisions, wherever they are stored.
///
/// They are in runs, each sorted by operation: one of level 0 has `PackedDecisions.packedAtOnce` entries, one of level n
/// at most 2^n times as many, and there is at most one of each level. The lower a level, the newer are its decisions.
protocol PackedRuns {
  /// Returns the levels of the runs, sorted.
  func packedLevels() throws -> [Int64]

  /// Returns the next parts of a run, at most `PackedDecisions.partsAtOnce`; none after the last one.
  ///
  /// - Parameter first: The first operation of the part before; nil for the start.
  func packedParts(ofLevel level: Int64, after first: OperationID?) throws -> [PackedDecisions]

  func insertPacked(_ parts: [PackedDecisions], level: Int64) throws

  func removePacked(below level: Int64) throws
}

extension PackedRuns {
  /// Adds a run: merged with those of the lowest levels, up to the first level that has none.
  func addRun(_ parts: [PackedDecisions]) throws {
    var remaining = parts[...]
    var runs: [PackedDecisions.Merge.Run] = [{ remaining.popFirst() }]
    var level: Int64 = 0
    for used in try packedLevels() where used == level {
      runs.append(run(ofLevel: used))
      level += 1
    }
    guard level < PackedDecisions.levels else { throw PackedDecisions.damaged }
    var merge = try PackedDecisions.Merge(runs)
    var merged: [PackedDecisions] = []
    while let part = try merge.next() {
      merged.append(part)
      guard merged.count == PackedDecisions.partsAtOnce else { continue }
      try insertPacked(merged, level: level)
      merged.removeAll(keepingCapacity: true)
    }
    if !merged.isEmpty { try insertPacked(merged, level: level) }
    if level > 0 { try removePacked(below: level) }
  }

  private func run(ofLevel level: Int64) -> PackedDecisions.Merge.Run {
    var last: OperationID?
    var parts: ArraySlice<PackedDecisions> = []
    return {
      if parts.isEmpty {
        parts = try packedParts(ofLevel: level, after: last)[...]
        // Or it would never end.
        if let last, let next = parts.last?.first, next <= last { throw PackedDecisions.damaged }
        last = parts.last?.first
      }
      return parts.popFirst()
    }
  }
}

extension PackedDecisions {
  /// How many decisions are packed together: they fill their rows.
  static let packedAtOnce = 6 * maximumEntries
  /// How many parts of a run are read or written at a time.
  static let partsAtOnce = 32
  /// More levels than the runs of a player will ever have.
  static let levels: Int64 = 41

  /// Returns the arrival before which decisions are packed now: one batch, so that a container with many (of an older
  /// version of the server) is packed little by little. Nil as long as too few are older than those that are kept in
  /// detail.
  static func packedBefore(oldest: Int64, newest: Int64, keeping detailed: Int64) -> Int64? {
    let count = Int64(packedAtOnce)
    return oldest <= newest.addingClamped(1 - detailed - count) ? oldest + count : nil
  }

  /// Takes the bytes of a row.
  static func stored(_ bytes: Data) throws -> PackedDecisions {
    guard let packed = PackedDecisions(bytes: bytes) else { throw damaged }
    return packed
  }

  fileprivate static var damaged: ServerError {
    ServerError(.damaged, "Packed decisions of a container's bank can't be read.")
  }
}
#endif
