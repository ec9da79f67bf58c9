import GRDB
package import KeepsakeReplication

/// The declaration that a slot stays on this device.
package struct LocalDeclaration: Hashable, Sendable, Codable {
  /// What the slot showed to other devices when it was declared local. A save replaces these versions when the slot
  /// comes back.
  package var parents: [VersionID]
  /// The declaration was revoked. Kept, so that a repair doesn't restore an older declaration from a backup.
  var hasEnded: Bool?

  // The names on disk; one is older than the name of its property.
  private enum CodingKeys: String, CodingKey {
    case parents = "basis"
    case hasEnded
  }

  package init(parents: [VersionID]) { self.parents = parents }
}

/// Slots that stay on this device, and the slot keys of their versions.
extension StoreTransaction {
  private static let declarations = "local slot/"
  /// Sorts after every name with that prefix.
  private static let declarationsEnd = "local slot0"

  package func localDeclaration(of slot: String) throws -> LocalDeclaration? {
    let declaration: LocalDeclaration? = try fact(Self.declarations + slot)
    return declaration?.hasEnded == true ? nil : declaration
  }

  /// Nil revokes the declaration.
  package mutating func setLocalDeclaration(_ declaration: LocalDeclaration?, of slot: String) throws {
    if declaration == nil, try localDeclaration(of: slot) == nil { return }
    var ended = LocalDeclaration(parents: [])
    ended.hasEnded = true
    try setFact(Self.declarations + slot, declaration ?? ended)
  }

  /// Returns whether saves in the slot stay on this device: it was declared local, or its local slot key has a head
  /// that is no tombstone, as for files that were tracked before files could be synced.
  package func isLocal(_ slot: String) throws -> Bool {
    try localDeclaration(of: slot) != nil || isTaken(SlotKey(text: slot).local)
  }

  private func isTaken(_ key: SlotKey) throws -> Bool {
    try heads(of: key).contains { try version($0)?.record.tombstone == false }
  }

  /// Returns the slot key of the versions that the game sees.
  package func key(of slot: String) throws -> SlotKey {
    let key = SlotKey(text: slot)
    return try isLocal(slot) ? key.local : key
  }

  /// Returns every slot that is local. Costs a query, and the records of the heads under local slot keys.
  package func localSlots() throws -> Set<String> {
    let names = try String.fetchAll(
      statement("SELECT name FROM fact WHERE name > ? AND name < ?"),
      arguments: [Self.declarations, Self.declarationsEnd])
    let declared = names.map { String(decoding: $0.utf8.dropFirst(Self.declarations.utf8.count), as: UTF8.self) }
    var slots = Set(try declared.filter { try localDeclaration(of: $0) != nil })
    let keys = try String.fetchAll(statement("SELECT DISTINCT slot FROM head WHERE slot >= char(1) AND slot < char(2)"))
    for key in keys.map(SlotKey.init(text:)) where try isTaken(key) { slots.insert(key.slot) }
    return slots
  }

  package func staysHere(_ slot: String) throws -> Bool { try isLocal(slot) }

  /// Returns the pinned versions of a slot, local and synced.
  package func pinned(in slot: String) throws -> Set<VersionID> {
    try pinnedVersions(of: slot).union(pinnedVersions(of: SlotKey(text: slot).local.text))
  }

  /// Returns the versions of a slot that are kept whole, including those made while it was local, newest first in the
  /// order in which this store learned of them.
  package func wholeHistory(of slot: String) throws -> [StoredVersion] {
    let local = SlotKey(text: slot).local
    let all = try versions(
      "SELECT \(VersionRow.columns) FROM version WHERE slot IN (?, ?) AND thinned = 0 ORDER BY position DESC",
      [slot, local.text])
    guard try !isLocal(slot) else { return all }
    // A tombstone that only marks the slot's return to the cloud isn't a delete.
    let ends = Set(try heads(of: local))
    return all.filter { !ends.contains($0.record.id) }
  }
}

/// The version that a tracked file on this device came from, which its next version replaces.
///
/// It is part of the store, because the file outlives the game: the file doesn't contain what other devices have
/// written since.
extension StoreTransaction {
  private static let fileBases = "file base/"

  package func fileBase(of slot: String) throws -> VersionID? { try fact(Self.fileBases + slot) }

  package mutating func setFileBase(_ id: VersionID, of slot: String) throws {
    guard try fileBase(of: slot) != id else { return }
    try setFact(Self.fileBases + slot, id)
  }
}
