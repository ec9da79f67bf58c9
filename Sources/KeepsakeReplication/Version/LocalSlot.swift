/// Slots that never leave the device: the versions of files that a game tracks.
///
/// Their names begin with a character that no name on the wire may have, so that neither a game nor another device can mean one, and a cloud would
/// refuse it.
package enum LocalSlot {
  private static let filePrefix = "\u{1}file/"

  /// The slot for the tracked file of that name.
  package static func file(_ name: String) -> String { filePrefix + name }

  /// The file's name; nil for any other slot.
  package static func fileName(_ slot: String) -> String? {
    slot.hasPrefix(filePrefix) ? String(slot.dropFirst(filePrefix.count)) : nil
  }

  package static func contains(_ slot: String) -> Bool { slot.utf8.first == 1 }
}

extension ExchangeRules {
  /// Why a version of this device's own can't be taken; nil if it can. Of local slots the name behind the mark has to be one.
  package static func objection(toOwn version: VersionRecord) -> Refusal? {
    var named = version
    if let name = LocalSlot.fileName(version.slot) { named.slot = name }
    return objection(to: named)
  }
}
