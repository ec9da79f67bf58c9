import Foundation
public import KeepsakeReplication
import KeepsakeStore

/// Importing the saves of an older game, which kept them without Keepsake.
extension SaveSlots {
  /// The most imported saves that a slot has in conflict: the newest of more are imported.
  public static var maximumOlderSaves: Int { 64 }

  /// Imports an older game's saves into slots.
  ///
  /// ```swift
  /// let report = try game.saves.importOlderSaves(found, to: { Slot($0.name) }, decode: { try world(from: $0.bytes) })
  /// for unfit in report.unfit { log("\(unfit.name): \(unfit.error)") }
  /// ```
  ///
  /// Each save becomes a version of its slot, made when the older game saved it. Several saves of one slot are in
  /// conflict, as if devices had made them without knowing of each other, and the slot's policy decides what `load`
  /// returns; where it compares times, the newest wins. A slot that has a save of the new game keeps it: import before
  /// the game's first save, or into other slots. Call `load` afterwards, also if the game had loaded the slot before:
  /// until then, a save is kept beside the imported ones.
  ///
  /// Can be repeated at each start: a save that was imported once isn't imported again, whether it was continued,
  /// replaced or deleted since. Nor is one that another device has imported. Two devices that import the same save
  /// before they sync make the same version, so that even what one of them played since replaces it on both. This needs
  /// the same bytes, time and device name on each, and the same result of the functions: two releases of the game that
  /// encode the value differently, or a `Codable` value whose coding has no fixed order, such as a `Set`, make two
  /// versions of it. They are in conflict then; nothing is lost. So it is, too, if a device that was never connected to
  /// a cloud continues an imported save over more than 60 starts before the other one imports it.
  ///
  /// What the older game saves afterwards is imported beside what it saved before, as long as the new game hasn't saved
  /// in the slot. Bytes that it saved before and saves again, as after a reset, count as imported.
  ///
  /// Durable on return. Costs hashing each save; decoding, encoding and compressing those that are imported, on the
  /// calling thread; and a wait for the disk for each slot that gets one.
  ///
  /// - Parameters:
  ///   - saves: The older game's saves, in any order.
  ///   - slot: Returns the slot of a save; nil for a save not to import. Must return the same on each device.
  ///   - decode: Returns the value of a save. Called only for a save that is to be imported.
  ///   - metadata: Returns what lists show for it. The name of its device is added to `SaveMetadata.custom`, under
  ///     `device`, unless the game has set that itself.
  /// - Returns: What was imported, what was skipped and why, and what can't be imported. An error of `slot` or `decode`
  ///   is in it and doesn't keep the other saves from being imported.
  /// - Throws: `GameDataError` with `closed`, and `StoreError` if the store can't be read or the disk can't be written:
  ///   the import can then be repeated, and continues.
  @discardableResult
  public func importOlderSaves<Value>(
    _ saves: [OlderSave], to slot: (_ save: OlderSave) throws -> Slot<Value>?,
    decode: (_ save: OlderSave) throws -> Value,
    metadata: (_ save: OlderSave, _ value: Value) -> SaveMetadata = { _, _ in SaveMetadata() }
  ) throws -> OlderSavesReport {
    var report = OlderSavesReport()
    var slots: [String: Slot<Value>] = [:]
    var candidates: [OlderSavePlan.Candidate] = []
    for (index, save) in saves.enumerated() {
      let found = try Self.noting(save, in: &report) {
        let slot = try slot(save)
        if let slot { try Self.check(slot.name) }
        return slot
      }
      guard let found else { continue }
      guard let slot = found else {
        report.others.append(save.name)
        continue
      }
      slots[slot.name] = slots[slot.name] ?? slot
      candidates.append(OlderSavePlan.Candidate(save, index: index, slot: slot.name))
    }
    for name in slots.keys { core.slotParents.waitForCaptures(in: name) }
    let bySlot = Dictionary(grouping: candidates, by: \.slot)
    let states = try core.store.read { transaction in
      try bySlot.reduce(into: [:]) { states, entry in
        states[entry.key] = try OlderSavePlan.SlotState(of: entry.key, entry.value.map(\.origin), in: transaction)
      }
    }

    let verdicts = OlderSavePlan(candidates, states: states).verdicts
    for (name, slot) in slots.sorted(by: { $0.key < $1.key }) {
      var room = states[name]?.room ?? 0
      var prepared: [PreparedOlderSave] = []
      for (candidate, verdict) in verdicts where candidate.slot == name {
        let save = saves[candidate.index]
        switch verdict {
        case .known: report.known.append(save.name)
        case .skip(let reason): report.skip(save, name, reason)
        case .take where room == 0: report.skip(save, name, .tooMany)
        case .take:
          let one = try Self.noting(save, in: &report) {
            let value = try decode(save)
            return try PreparedOlderSave(value, of: save, candidate, in: slot, metadata(save, value))
          }
          guard let one else { continue }
          prepared.append(one)
          room -= 1
        }
      }
      if !prepared.isEmpty { try add(prepared, to: name, &report) }
    }
    return report
  }

  /// Adds the versions of one slot, in one transaction.
  private func add(_ prepared: [PreparedOlderSave], to slot: String, _ report: inout OlderSavesReport) throws {
    // Reported only if the transaction succeeds.
    typealias Outcome = (save: OlderSave, verdict: OlderSavePlan.Verdict, version: Version?)
    let (outcomes, isConflict) = try core.store.write { transaction -> ([Outcome], Bool) in
      // The game may have saved in the meantime.
      let state = try OlderSavePlan.SlotState(of: slot, prepared.map(\.candidate.origin), in: transaction)
      var groups = AdoptedGroups()
      var outcomes: [Outcome] = []
      for one in prepared {
        var verdict = OlderSavePlan.verdict(on: one.candidate.origin, state)
        // Another device may have imported it, and replaced it in a version that doesn't name the older save.
        if verdict == .take, try !DeviceCommit.isUnknown(one.record.id, in: transaction) { verdict = .known }
        guard verdict == .take else {
          outcomes.append((one.save, verdict, nil))
          continue
        }
        try transaction.keepContents(of: one.contents)
        let version = StoredVersion(record: one.record, acknowledged: false, offered: true)
        try DeviceCommit.adopt(version, isHead: true, into: &groups, in: &transaction)
        outcomes.append((one.save, verdict, Version(version, isPinned: false)))
      }
      try groups.enter(&transaction)
      return (outcomes, try Resolution.view(of: slot, in: transaction).isConflict)
    }
    for outcome in outcomes {
      switch outcome.verdict {
      case .take:
        guard let version = outcome.version else { continue }
        report.imported.append(.init(name: outcome.save.name, device: outcome.save.device, version: version))
      case .known: report.known.append(outcome.save.name)
      case .skip(let reason): report.skip(outcome.save, slot, reason)
      }
    }
    guard outcomes.contains(where: { $0.verdict == .take }) else { return }
    if isConflict { report.conflicted.append(slot) }
    core.events.slotsDidChange()
    core.cloud.didCommit()
  }

  /// Returns what `body` returns; nil if it throws, after adding the error to the report.
  private static func noting<Result>(
    _ save: OlderSave, in report: inout OlderSavesReport, _ body: () throws -> Result
  ) throws -> Result? {
    do {
      return try body()
    } catch let error as GameDataError where error.code == .closed {
      throw error
    } catch {
      report.unfit.append(.init(name: save.name, device: save.device, error: error))
      return nil
    }
  }
}

extension OlderSavesReport {
  fileprivate mutating func skip(_ save: OlderSave, _ slot: String, _ reason: Skipped.Reason) {
    skipped.append(Skipped(name: save.name, device: save.device, slot: slot, reason: reason))
  }
}

/// An older save as the version that it becomes, before it is in the store.
private struct PreparedOlderSave {
  let save: OlderSave
  let candidate: OlderSavePlan.Candidate
  let contents: SegmentedSave
  let record: VersionRecord

  init<Value>(
    _ value: Value, of save: OlderSave, _ candidate: OlderSavePlan.Candidate, in slot: Slot<Value>,
    _ metadata: SaveMetadata
  ) throws {
    self.save = save
    self.candidate = candidate
    var metadata = metadata
    if metadata.device == nil { metadata.device = save.device }
    let bytes = try slot.coding.encode(value, writer: OlderSaveIdentity.writer.value)
    guard bytes.count <= EncodedContent.maximumContentBytes else {
      throw GameDataError(
        .tooLarge,
        """
        the save for "\(slot.name)" has \(bytes.count) bytes; at most \(EncodedContent.maximumContentBytes) are allowed
        """)
    }
    contents = SegmentedSave(bytes)
    record = OlderSaveIdentity.record(
      of: candidate, contents: contents.hashes, length: bytes.count, metadata: metadata)
    if let refusal = ExchangeRules.objection(toOwn: record) {
      throw GameDataError(
        refusal.reason == .tooLarge ? .tooLarge : .misuse, "\"\(slot.name)\" can't be saved: \(refusal.message)")
    }
  }
}

extension OlderSavePlan.SlotState {
  /// Reads what a slot has.
  ///
  /// - Parameter origins: The older saves to look for.
  fileprivate init(of slot: String, _ origins: [VersionID], in transaction: StoreTransaction) throws {
    isLocal = try transaction.isLocal(slot)
    known = Set(try origins.filter(transaction.isCovered))
    heads = try transaction.heads(of: try transaction.key(of: slot)).compactMap { id in
      guard let record = try transaction.version(id)?.record else { return nil }
      return record.tombstone ? .deleted : record.writer == OlderSaveIdentity.writer ? .imported : .saved
    }
  }
}
