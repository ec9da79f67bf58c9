import KeepsakeStore

/// The player's setting for whether the cloud is enabled, stored with the data.
extension GameCore {
  private static let factName = "cloud enabled"

  func isCloudEnabled() throws -> Bool { try store.read { try $0.fact(Self.factName) ?? true } }

  /// Stores the setting. It is durable on return, unless an incident reports an error.
  func keepCloudEnabled(_ isEnabled: Bool) {
    do {
      guard try isCloudEnabled() != isEnabled else { return }
      try store.write { try $0.setFact(Self.factName, isEnabled) }
    } catch {
      events.report(
        Incident(
          kind: .failedCommit, message: "whether the cloud is switched on could not be saved: \(error)", date: now))
    }
  }
}
