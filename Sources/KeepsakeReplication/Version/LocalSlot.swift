/// Where a slot's versions are kept that never leave the device.
///
/// The names of these places begin with a character that no name on the wire may have, so that neither a game nor another device can mean one, and a
/// cloud would refuse it. What stands in a place is kept beside what the slot itself has, so that a version which another device made under the same name
/// neither gets lost nor in the way.
package enum LocalSlot {
  private static let savePrefix = "\u{1}slot/"
  private static let filePrefix = "\u{1}file/"

  /// The place on this device for a slot's versions.
  package static func place(of slot: String) -> String {
    FileSlot.name(of: slot).map { filePrefix + $0 } ?? savePrefix + slot
  }

  /// The slot whose place it is; any other name is a slot itself.
  package static func slot(at place: String) -> String {
    place.rest(after: filePrefix).map(FileSlot.slot) ?? place.rest(after: savePrefix) ?? place
  }

  package static func contains(_ slot: String) -> Bool { slot.utf8.first == 1 }
}

/// The slots of files that a game tracks, on the wire and in stores.
///
/// Their names begin with a character for private use, and no saved game's may.
package enum FileSlot {
  private static let prefix = "\u{E000}file/"

  /// The slot for the tracked file of that name.
  package static func slot(_ name: String) -> String { prefix + name }

  /// The file's name; nil for any other slot.
  package static func name(of slot: String) -> String? { slot.rest(after: prefix) }

  package static func contains(_ slot: String) -> Bool { name(of: slot) != nil }

  /// What a person calls the slot or file whose versions stand at a place.
  package static func shown(_ place: String) -> String {
    let slot = LocalSlot.slot(at: place)
    return name(of: slot) ?? slot
  }
}

extension String {
  /// Byte for byte: a name that begins with an accent joins the character before it, and would hide the prefix.
  fileprivate func rest(after prefix: String) -> String? {
    guard utf8.starts(with: prefix.utf8) else { return nil }
    return String(decoding: utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
  }
}

extension ExchangeRules {
  /// Why a version of this device's own can't be taken; nil if it can. Of one that stays here only the name that people know has to be one.
  package static func objection(toOwn version: VersionRecord) -> Refusal? {
    guard LocalSlot.contains(version.slot) else { return objection(to: version) }
    var named = version
    named.slot = FileSlot.shown(version.slot)
    return objection(to: named)
  }
}
