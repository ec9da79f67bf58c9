/// The key under which the versions of a slot are stored.
///
/// A `VersionRecord` holds the key's text, as it is stored and sent. A saved game's is its name. A tracked file's
/// begins with a private-use character that no saved game's name may have. Local keys begin with a
/// control character that no name on the wire may have, so that neither a game nor another device can use one, and a
/// cloud would refuse it. Versions under a local key are stored beside those of the synced slot of the same name, so
/// that a version which another device made under that name is neither lost nor in the way.
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

  /// Parses a key's text. Every text is a valid key.
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

  /// The text that is stored and sent.
  package var text: String {
    switch self {
    case .save(let name): name
    case .file(let name): Self.filePrefix + name
    case .localSave(let name): Self.localSavePrefix + name
    case .localFile(let name): Self.localFilePrefix + name
    }
  }

  /// The name of the slot or file, as people know it.
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

  /// Whether versions under the key never leave the device.
  package var isLocal: Bool {
    switch self {
    case .localSave, .localFile: true
    case .file: false
    // No name may begin with the mark, whatever follows it.
    case .save(let name): name.utf8.first == Self.localMark
    }
  }

  /// The key of the same slot as it is synced.
  package var synced: SlotKey {
    switch self {
    case .save, .file: self
    case .localSave(let name): .save(name)
    case .localFile(let name): .file(name)
    }
  }

  /// The local key of the same slot. For a local key it is one under which nothing is stored.
  package var local: SlotKey {
    switch self {
    case .save(let name): .localSave(name)
    case .file(let name): .localFile(name)
    case .localSave, .localFile: .localSave(text)
    }
  }

  /// The slot's name within a game: the same for its local and its synced key.
  package var slot: String { synced.text }
}

extension VersionRecord {
  package var key: SlotKey { SlotKey(text: slot) }
}

extension DeviceStorage {
  /// Returns the versions under `key` that no known version covers, sorted by id.
  package func heads(of key: SlotKey) throws -> [VersionID] { try heads(of: key.text) }
}

extension Resolution {
  /// Returns the state of the slot under `key`, as a game sees it.
  package static func view(
    of key: SlotKey, in storage: some DeviceStorage, policy: SavePolicy = .mostProgress
  ) throws -> SlotView {
    try view(of: key.text, in: storage, policy: policy)
  }
}

extension String {
  /// Compares bytes: a name that begins with a combining accent would join the prefix's last character.
  fileprivate func rest(after prefix: String) -> String? {
    guard utf8.starts(with: prefix.utf8) else { return nil }
    return String(decoding: utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
  }
}

extension ExchangeRules {
  /// Returns why a version of this device can't be accepted; nil if it can. For a local version, only the name that
  /// people know has to be valid.
  package static func objection(toOwn version: VersionRecord) -> Refusal? {
    let key = version.key
    guard key.isLocal || key.isFile else { return objection(to: version) }
    let rule = !key.isFile ? NameRule.slot : key.isLocal ? .localFile : .trackedFile
    if let why = rule.objection(to: key.name) { return Refusal(item: item(version.id), reason: .invalid, message: why) }
    var named = version
    named.slot = key.name
    return objection(to: named)
  }
}
