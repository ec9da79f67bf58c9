import Foundation
package import KeepsakeReplication
import Synchronization

/// Something in a store that doesn't verify, and what was done about it.
package struct SealFinding: Hashable, Sendable {
  package enum Outcome: String, Hashable, Sendable {
    /// Used as it is.
    case used
    /// Moved to the table `quarantine`.
    case setAside
  }
  /// The row's identity in the store: "version 0123...", "cell progress/level", "fact wallet".
  package var place: String
  package var outcome: Outcome
  /// The checksum is wrong too, so a broken disk is more likely than tampering.
  package var isDamage = false
  /// Every row verifies, but together they are not what was written: some are missing, or older.
  package var isRollback = false
  /// The version, if the row is its record.
  package var version: VersionID?
  /// The slot that the row names.
  package var slot: String?
  /// The version that the slot shows instead.
  package var usedInstead: VersionID?

  package init(place: String, outcome: Outcome, isDamage: Bool = false) {
    self.place = place
    self.outcome = outcome
    self.isDamage = isDamage
  }

  /// The finding for all rows together.
  static let rollback: SealFinding = {
    var finding = SealFinding(place: "the store as a whole", outcome: .used)
    finding.isRollback = true
    return finding
  }()

  /// A sentence for people.
  package var message: String {
    if isRollback { return error.message + "; the existing rows are used" }
    let what = isDamage ? "\(place) is damaged" : "\(place) doesn't verify: somebody without the secret wrote it"
    return outcome == .used ? "\(what); it is used anyway" : "\(what); it was set aside"
  }

  var error: StoreError {
    if isRollback { return StoreError(.tampered, "rows of the store were removed, or replaced by older ones") }
    return isDamage
      ? StoreError(.damaged, "the data of \(place) is damaged")
      : StoreError(
        .tampered, "the data of \(place) doesn't verify: somebody without the secret wrote it, or moved it there")
  }
}

/// Collects findings until there is an observer.
package final class SealFindings: Sendable {
  private struct State {
    var known: Set<String> = []
    var waiting: [SealFinding] = []
    var observer: (@Sendable (SealFinding) -> Void)?
  }
  /// A store in which everything was changed must not fill the memory.
  private static let maximumKnown = 10_000
  private let state = Mutex(State())

  package init() {}

  /// Reports a finding, once per identity.
  func note(_ finding: SealFinding) {
    let observer = state.withLock { state -> (@Sendable (SealFinding) -> Void)? in
      guard state.known.count < Self.maximumKnown, state.known.insert(finding.place).inserted else { return nil }
      if state.observer == nil { state.waiting.append(finding) }
      return state.observer
    }
    observer?(finding)
  }

  /// Passes on the findings so far, and from then on each new one, on the thread that found it.
  package func observe(_ observer: @escaping @Sendable (SealFinding) -> Void) {
    let waiting = state.withLock { state in
      state.observer = observer
      defer { state.waiting = [] }
      return state.waiting
    }
    for finding in waiting { observer(finding) }
  }
}
