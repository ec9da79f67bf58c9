import KeepsakeReplication

/// The limits for preferences.
enum PreferenceLimits {
  static func isName(_ name: String) -> Bool { NameRule.preference.allows(name) }

  static func check(_ name: String) throws {
    if let objection = NameRule.preference.objection(to: name) { throw GameDataError(.misuse, objection) }
  }

  static func check(size: Int, of name: String, isSynced: Bool) throws {
    let most = isSynced ? Preferences.maximumSyncedBytes : Preferences.maximumValueBytes
    guard size <= most else {
      throw GameDataError(
        .tooLarge,
        """
        "\(name.prefix(80))" takes \(size) bytes; a \(isSynced ? "synced " : "")preference may take at most \
        \(most): keep larger data in a saved game
        """)
    }
  }

  static func check(count: Int, adds: Bool, bytes: Int) throws {
    guard !adds || count <= Preferences.maximumKeys else {
      throw GameDataError(.tooLarge, "there may be at most \(Preferences.maximumKeys) preferences")
    }
    guard bytes <= Preferences.maximumBytes else {
      throw GameDataError(
        .tooLarge,
        "all preferences together may take at most \(Preferences.maximumBytes) bytes; keep larger data in saved games")
    }
  }
}
