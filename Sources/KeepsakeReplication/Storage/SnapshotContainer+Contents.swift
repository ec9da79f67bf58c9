import Foundation

// Contents, the room that they take, and damage.
extension SnapshotContainer {
  // MARK: Contents

  /// Contents without a version that one decision removes when room is needed; the next one removes more.
  package static let straysAtOnce = 1_000

  /// What is known of a content; nil if it isn't here.
  private func facts(_ hash: ContentHash) throws -> Snapshot.Content? {
    if let changed = contents[hash] { return changed }
    guard base.known.contents.contains(hash) else { throw NotLoaded { $0.contents = [hash] } }
    return base.contents[hash]
  }

  package func hasContent(_ hash: ContentHash) throws -> Bool {
    // A content that a device received damaged is still served, but nothing may depend on it before it was put again;
    // one whose bytes are lost counts as missing: some device still has it, and sends it again.
    try facts(hash).map { !$0.isSuspect && !$0.isLost } ?? false
  }

  /// Whether there is such a content, sound or not.
  func isHere(_ hash: ContentHash) throws -> Bool { try facts(hash) != nil }

  /// Returns a content that is small enough for a response.
  package func content(_ hash: ContentHash) throws -> EncodedContent? {
    if let new = newContents[hash] { return new }
    if case .some(nil) = contents[hash] { return nil }
    guard base.known.frames.contains(hash) else { throw NotLoaded { $0.frames = [hash] } }
    return base.frames[hash]
  }

  package mutating func putContent(_ content: EncodedContent) throws {
    let isKept = try keep(
      WriteSet.Content(
        hash: content.hash, length: content.length, base: content.base, bytes: .inline(content.bytes)))
    if isKept { newContents[content.hash] = content }
  }

  /// Keeps a content; returns false if it is here already.
  package mutating func keep(_ content: WriteSet.Content) throws -> Bool {
    guard try !hasContent(content.hash) else { return false }
    try remove(content.hash)
    writes.contents.append(content)
    let size = Int64(content.bytes.count)
    contents[content.hash] = Snapshot.Content(base: content.base, size: size)
    writes.used += size
    if let base = content.base { leaning[base, default: 0] += 1 }
    return true
  }

  /// Removes a content, whatever needs it.
  private mutating func remove(_ hash: ContentHash) throws {
    guard let old = try facts(hash) else { return }
    contents[hash] = .some(nil)
    newContents[hash] = nil
    writes.contents.removeAll { $0.hash == hash }
    writes.removedContents.insert(hash)
    writes.suspects.remove(hash)
    writes.used -= old.size
    if let base = old.base { leaning[base, default: 0] -= 1 }
  }

  // MARK: Room

  package func usedBytes() throws -> Int64 {
    guard base.known.used else { throw NotLoaded { $0.used = true } }
    return base.used + writes.used
  }

  package func replacedHolders(in slot: String?) throws -> [SlotVersion] {
    if let slot {
      let name = ExactText(slot)
      guard base.known.wholeRoom || base.known.rooms.contains(name) else { throw NotLoaded { $0.rooms = [name] } }
    } else if !base.known.wholeRoom {
      throw NotLoaded { $0.wholeRoom = true }
    }
    var found: [SlotVersion] = []
    for holders in [base.room.holders, newHolders] {
      for (id, holder) in holders where writes.released[id] == nil {
        guard slot.map({ ExactText($0) == ExactText(holder.slot) }) ?? true, try isCovered(id) else { continue }
        found.append(SlotVersion(slot: holder.slot, version: id))
      }
    }
    return found.sorted { ($0.version) < ($1.version) }
  }

  package mutating func releaseContents(of version: VersionID) throws {
    guard writes.released[version] == nil, let holder = newHolders[version] ?? base.room.holders[version] else {
      return
    }
    writes.released[version] = holder
    for hash in holder.contents.sorted() {
      holders[hash, default: 0] -= 1
      try removeUnneeded(hash)
    }
  }

  /// Removes a content that no version holds and that is no other content's base, and then its own base likewise.
  private mutating func removeUnneeded(_ hash: ContentHash) throws {
    var next: ContentHash? = hash
    while let hash = next, let (held, needed) = try users(of: hash), held == 0, needed == 0 {
      next = try baseInRoom(of: hash)
      try removeInRoom(hash)
    }
  }

  /// How many versions hold a content, and how many others have it as their base; nil if it isn't here.
  private func users(of hash: ContentHash) throws -> (holders: Int, leaning: Int)? {
    if case .some(nil) = contents[hash] { return nil }
    guard let known = base.room.contents[hash] else {
      guard isRoomKnown(of: hash) else { throw NotLoaded { $0.roomOfContents = [hash] } }
      return contents[hash] == nil ? nil : (holders[hash] ?? 0, leaning[hash] ?? 0)
    }
    return (known.holders + (holders[hash] ?? 0), known.leaning + (leaning[hash] ?? 0))
  }

  private func isRoomKnown(of hash: ContentHash) -> Bool {
    base.known.wholeRoom || base.known.roomOfContents.contains(hash)
  }

  private func baseInRoom(of hash: ContentHash) throws -> ContentHash? {
    if let changed = contents[hash] { return changed?.base }
    return base.room.contents[hash]?.base
  }

  private mutating func removeInRoom(_ hash: ContentHash) throws {
    if contents[hash] == nil, let known = base.room.contents[hash], !base.known.contents.contains(hash) {
      // Nothing else was asked about it.
      contents[hash] = Snapshot.Content(base: known.base, size: known.size)
    }
    try remove(hash)
  }

  package mutating func removeStrayContents(before milliseconds: Int64) throws {
    guard base.known.wholeRoom else { throw NotLoaded { $0.wholeRoom = true } }
    var strays: [ContentHash] = []
    for (hash, content) in base.room.contents where content.takenMilliseconds < milliseconds {
      if let users = try users(of: hash), users.holders == 0, users.leaning == 0 { strays.append(hash) }
    }
    for hash in strays.sorted().prefix(Self.straysAtOnce) { try removeUnneeded(hash) }
  }

  // MARK: Damage

  package func suspectContents() throws -> [ContentHash] {
    guard base.known.suspects else { throw NotLoaded { $0.suspects = true } }
    let gone = contents.filter { $0.value?.isSuspect != true }.keys
    return Set(base.suspects).subtracting(gone).union(writes.suspects).sorted()
  }

  package func isSuspect(_ hash: ContentHash) throws -> Bool { try facts(hash)?.isSuspect ?? false }

  package mutating func suspectContent(_ hash: ContentHash) throws {
    guard var facts = try facts(hash), !facts.isSuspect else { return }
    facts.isSuspect = true
    contents[hash] = facts
    writes.suspects.insert(hash)
  }

  package func heads(needing hash: ContentHash) throws -> [VersionID] {
    guard base.known.needing.contains(hash) else { throw NotLoaded { $0.needing = [hash] } }
    return try (base.needing[hash] ?? []).filter { try !isCovered($0) }
  }
}
