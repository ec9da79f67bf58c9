import KeepsakeStore

/// The player's switch for the cloud, kept with the data.
extension GameCore {
  private static let factName = "cloud enabled"

  func isCloudEnabled() throws -> Bool { try store.read { try $0.fact(Self.factName) ?? true } }

  /// Durable when this returns, or an incident says why not.
  func keepCloudEnabled(_ isEnabled: Bool) {
    do {
      guard try isCloudEnabled() != isEnabled else { return }
      try store.write { try $0.setFact(Self.factName, isEnabled) }
    } catch {
      events.report(
        Incident(
          kind: .failedCommit, message: "whether the cloud is switched on could not be kept: \(error)", date: now))
    }
  }
}
