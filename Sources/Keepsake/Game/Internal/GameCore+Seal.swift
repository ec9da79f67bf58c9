import KeepsakeStore

extension GameCore {
  /// Reports what doesn't verify: what opening found, and what is met later.
  func reportSealFindings() {
    store.sealFindings.observe { [weak self] finding in
      guard let self else { return }
      self.report(
        Incident(
          kind: finding.isDamage ? (finding.version == nil ? .unreadable : .damagedVersion) : .tampered, slot: finding.slot,
          version: finding.version, usedInstead: finding.usedInstead, message: finding.message, date: self.now))
    }
  }
}
