import Foundation
import KeepsakeReplication
import Synchronization

/// Remembers what a commit would otherwise read a whole table for: which slots are in conflict, which of their merge
/// bases are pruned, and which group of the outbox a version waits in. So a commit costs the same however many slots
/// there are, however long those in conflict have been played, and however much waits.
///
/// Only transactions that write use it, one after the other. Each part is read from its table when it is first needed,
/// and updated with each change from then on. If a change is rolled back, everything is forgotten. Groups that were
/// read or written lately are compared with their rows whenever they are used: the next commit joins one of them, each
/// exchange reads all that wait, and none has to be decoded again.
final class CommitMemory: Sendable {
  private struct Outbox {
    var versions: [Int64: [VersionID]] = [:]
    /// The group of each version; the newest one, if several have it.
    var groups: [VersionID: Int64] = [:]

    mutating func set(_ versions: [VersionID]?, of group: Int64) {
      for id in self.versions[group] ?? [] where groups[id] == group { groups[id] = nil }
      self.versions[group] = versions
      for id in versions ?? [] { groups[id] = group }
    }
  }
  /// A slot in conflict.
  private struct Conflict {
    /// Nil if nobody looked for them since the slot changed.
    var prunedMergeBases: Set<VersionID>?
  }
  private struct State {
    /// By the names' bytes, because names from elsewhere may differ and still compare equal as strings.
    var conflicts: [Data: Conflict]?
    var outbox: Outbox?
  }
  /// Groups of the outbox with the bodies of their rows.
  private struct Groups {
    /// Of all bodies.
    static let maximumBytes = 1 << 20

    private var known: [Int64: (group: OutboxGroup, body: Data)] = [:]
    private var bytes = 0

    func group(_ id: Int64, in body: Data) -> OutboxGroup? { known[id].flatMap { $0.body == body ? $0.group : nil } }

    /// Makes room by forgetting all others: the newest group is kept however large it is.
    mutating func keep(_ group: OutboxGroup, in body: Data) {
      forget(group.id)
      if bytes + body.count > Self.maximumBytes { (known, bytes) = ([:], 0) }
      known[group.id] = (group, body)
      bytes += body.count
    }

    mutating func forget(_ id: Int64) { bytes -= known.removeValue(forKey: id)?.body.count ?? 0 }
  }
  private let state = Mutex(State())
  private let groups = Mutex(Groups())

  /// Forgets everything, because a transaction or a part of one was rolled back.
  func forget() { state.withLock { $0 = State() } }

  // MARK: Conflicts

  /// Returns the slots in conflict.
  ///
  /// - Parameter read: Reads them from the table. Called if they aren't known.
  func conflicts(_ read: () throws -> [Data]) rethrows -> [Data] {
    if let known = state.withLock({ $0.conflicts }) { return Array(known.keys) }
    let found = try read()
    state.withLock { $0.conflicts = Dictionary(found.map { ($0, Conflict()) }) { first, _ in first } }
    return found
  }

  /// Records whether a slot whose versions changed is in conflict.
  func setConflict(_ isInConflict: Bool, in slot: Data) {
    state.withLock { $0.conflicts?[slot] = isInConflict ? Conflict() : nil }
  }

  /// Returns the merge bases of a slot in conflict that are pruned, and maybe some that are kept whole again.
  ///
  /// - Parameter read: Looks for them among the slot's versions. Called if they aren't known.
  func prunedMergeBases(of slot: Data, _ read: () throws -> Set<VersionID>) rethrows -> Set<VersionID> {
    if let known = state.withLock({ $0.conflicts?[slot]?.prunedMergeBases }) { return known }
    let found = try read()
    state.withLock { $0.conflicts?[slot]?.prunedMergeBases = found }
    return found
  }

  /// Forgets the merge bases of a slot, because records of its versions were removed.
  func forgetMergeBases(of slot: Data) {
    state.withLock { $0.conflicts?[slot]?.prunedMergeBases = nil }
  }

  // MARK: Outbox

  /// Returns the groups whose versions are all among `ids`.
  ///
  /// - Parameter read: Reads all groups from the table. Called if they aren't known.
  func groups(onlyOf ids: Set<VersionID>, _ read: () throws -> [OutboxGroup]) rethrows -> [Int64] {
    if state.withLock({ $0.outbox == nil }) {
      var outbox = Outbox()
      for group in try read() { outbox.set(group.versions, of: group.id) }
      state.withLock { [outbox] in $0.outbox = outbox }
    }
    return state.withLock { state in
      guard let outbox = state.outbox else { return [] }
      return Set(ids.compactMap { outbox.groups[$0] }).filter {
        outbox.versions[$0]?.allSatisfy(ids.contains) ?? false
      }.sorted()
    }
  }

  /// Returns the group in a row, if it was read or written lately.
  func group(_ id: Int64, in body: Data) -> OutboxGroup? { groups.withLock { $0.group(id, in: body) } }

  /// Records that a group was read.
  func didRead(_ group: OutboxGroup, in body: Data) { groups.withLock { $0.keep(group, in: body) } }

  /// Records that a group was written.
  func didWrite(_ group: OutboxGroup, as body: Data) {
    state.withLock { $0.outbox?.set(group.versions, of: group.id) }
    groups.withLock { $0.keep(group, in: body) }
  }

  /// Records that a group was removed.
  func didRemoveGroup(_ id: Int64) {
    state.withLock { $0.outbox?.set(nil, of: id) }
    groups.withLock { $0.forget(id) }
  }
}
