/// What a device may do with its container.
package enum ContainerAccess: String, Codable, CaseIterable, Hashable, Sendable {
  /// It reads, saves and spends.
  case readWrite
  /// It sees what other devices save, and nothing is taken of it.
  case readOnly
}

extension Refusal {
  /// The refusal of everything that a device sends which may only read.
  static let asReadOnly = Refusal(
    item: everything, reason: .readOnly,
    message: """
      this game may only read this container: what it saves there stays on this device until the game's studio lets \
      it write
      """)
}

extension Refusal.Reason {
  /// Whether it is about everything that a device sends, until the cloud says otherwise.
  var isOfAll: Bool { self == .setBack || self == .readOnly }
}
