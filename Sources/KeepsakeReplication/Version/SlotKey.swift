/// Under what the versions of a slot are kept.
///
/// A `VersionRecord` has the key's text, as it is stored and sent. That of a saved game is its name. That of a tracked file begins with a character
/// for private use, which no saved game's name may have. Local keys begin with a control character that no name on the wire may have, so that
/// neither a game nor another device can mean one, and a cloud would refuse it. What is under a local key is kept beside what the slot itself
/// has, so that a version which another device made under the same name neither gets lost nor in the way.
package enum SlotKey: Hashable, Sendable {
  /// A saved game, by its name.
  case save(String)
  /// A tracked file, by its name.
  case file(String)
  /// A saved game that stays on this device.
  case localSave(String)
  /// A tracked file whose versions stay on this device.
  case localFile(String)

  private static let localMark: UInt8 = 1
  private static let filePrefix = "\u{E000}file/"
  private static let localSavePrefix = "\u{1}slot/"
  private static let localFilePrefix = "\u{1}file/"

  /// The key with this text. Any text is one.
  package init(text: String) {
    if let name = text.rest(after: Self.filePrefix) {
      self = .file(name)
    } else if let name = text.rest(after: Self.localSavePrefix) {
      self = .localSave(name)
    } else if let name = text.rest(after: Self.localFilePrefix) {
      self = .localFile(name)
    } else {
      self = .save(text)
    }
  }

  /// As it is stored and sent.
  package var text: String {
    switch self {
    case .save(let name): name
    case .file(let name): Self.filePrefix + name
    case .localSave(let name): Self.localSavePrefix + name
    case .localFile(let name): Self.localFilePrefix + name
    }
  }

  /// What a person calls the slot or file.
  package var name: String {
    switch self {
    case .save(let name), .file(let name), .localSave(let name), .localFile(let name): name
    }
  }

  /// The name of a tracked file; nil for a saved game.
  package var fileName: String? {
    switch self {
    case .file(let name), .localFile(let name): name
    case .save, .localSave: nil
    }
  }

  package var isFile: Bool { fileName != nil }

  /// Whether what is under the key never leaves the device.
  package var isLocal: Bool {
    switch self {
    case .localSave, .localFile: true
    case .file: false
    // No name may begin so, whatever follows.
    case .save(let name): name.utf8.first == Self.localMark
    }
  }

  /// The same slot's key in the cloud's reach.
  package var synced: SlotKey {
    switch self {
    case .save, .file: self
    case .localSave(let name): .save(name)
    case .localFile(let name): .file(name)
    }
  }

  /// The same slot's key on this device alone. One of a key that is local already is a key of its own, under which nothing is kept.
  package var local: SlotKey {
    switch self {
    case .save(let name): .localSave(name)
    case .file(let name): .localFile(name)
    case .localSave, .localFile: .localSave(text)
    }
  }

  /// The slot, as the parts of a game name it to each other: the same wherever its versions are kept.
  package var slot: String { synced.text }
}

extension VersionRecord {
  package var key: SlotKey { SlotKey(text: slot) }
}

extension DeviceStorage {
  /// The versions under `key` that nothing known covers, sorted by id.
  package func heads(of key: SlotKey) throws -> [VersionID] { try heads(of: key.text) }
}

extension Resolution {
  /// What is under `key`, as it is shown.
  package static func view(
    of key: SlotKey, in storage: some DeviceStorage, policy: SavePolicy = .mostProgress
  ) throws -> SlotView {
    try view(of: key.text, in: storage, policy: policy)
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
    guard version.key.isLocal else { return objection(to: version) }
    var named = version
    named.slot = version.key.name
    return objection(to: named)
  }
}
