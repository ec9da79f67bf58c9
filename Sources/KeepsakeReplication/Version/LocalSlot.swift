/// The slot keys of versions that never leave the device.
///
/// These keys begin with a character that no slot name on the wire may have, so that neither a game nor another device
/// can mean one, and a cloud would refuse it. The versions of a local slot are kept beside those of the slot itself, so
/// that a version which another device made under the same name is neither lost nor in the way.
package enum LocalSlot {
  private static let savePrefix = "\u{1}slot/"
  private static let filePrefix = "\u{1}file/"

  /// Returns the key of a slot's local versions on this device.
  package static func place(of slot: String) -> String {
    FileSlot.name(of: slot).map { filePrefix + $0 } ?? savePrefix + slot
  }

  /// Returns the slot that a key belongs to; a key that isn't local is a slot itself.
  package static func slot(at place: String) -> String {
    place.rest(after: filePrefix).map(FileSlot.slot) ?? place.rest(after: savePrefix) ?? place
  }

  package static func contains(_ slot: String) -> Bool { slot.utf8.first == 1 }
}

/// The slots of files that a game tracks, on the wire and in stores.
///
/// Their names begin with a private-use character, which no saved game's name may.
package enum FileSlot {
  private static let prefix = "\u{E000}file/"

  /// Returns the slot for the tracked file of that name.
  package static func slot(_ name: String) -> String { prefix + name }

  /// Returns the file's name; nil for any other slot.
  package static func name(of slot: String) -> String? { slot.rest(after: prefix) }

  package static func contains(_ slot: String) -> Bool { name(of: slot) != nil }

  /// Returns the name by which people know the slot or file that a slot key belongs to.
  package static func shown(_ place: String) -> String {
    let slot = LocalSlot.slot(at: place)
    return name(of: slot) ?? slot
  }
}

extension String {
  /// Compares bytes: a name that begins with a combining accent merges with the character before it, and would hide the
  /// prefix.
  fileprivate func rest(after prefix: String) -> String? {
    guard utf8.starts(with: prefix.utf8) else { return nil }
    return String(decoding: utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
  }
}

extension ExchangeRules {
  /// Returns why a version of this device's own can't be accepted; nil if it can. For one that stays here only the name
  /// that people know has to be valid.
  package static func objection(toOwn version: VersionRecord) -> Refusal? {
    guard LocalSlot.contains(version.slot) else { return objection(to: version) }
    var named = version
    named.slot = FileSlot.shown(version.slot)
    return objection(to: named)
  }
}
