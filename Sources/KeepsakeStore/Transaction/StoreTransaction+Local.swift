import GRDB
package import KeepsakeReplication

/// That a slot stays on this device.
package struct LocalDeclaration: Hashable, Sendable, Codable {
  /// What the slot showed to other devices when it was declared: what a save that comes back replaces there.
  package var parents: [VersionID]
  /// It was taken back. Kept, so that no repair finds an older word of it in a backup.
  var hasEnded: Bool?

  // The names on disk; one is older than the property's.
  private enum CodingKeys: String, CodingKey {
    case parents = "basis"
    case hasEnded
  }

  package init(parents: [VersionID]) { self.parents = parents }
}

/// Slots that stay on this device, and where their versions are.
extension StoreTransaction {
  private static let declarations = "local slot/"
  /// After every name that begins so.
  private static let declarationsEnd = "local slot0"

  package func localDeclaration(of slot: String) throws -> LocalDeclaration? {
    let declaration: LocalDeclaration? = try fact(Self.declarations + slot)
    return declaration?.hasEnded == true ? nil : declaration
  }

  /// Nil takes it back.
  package mutating func setLocalDeclaration(_ declaration: LocalDeclaration?, of slot: String) throws {
    if declaration == nil, try localDeclaration(of: slot) == nil { return }
    var ended = LocalDeclaration(parents: [])
    ended.hasEnded = true
    try setFact(Self.declarations + slot, declaration ?? ended)
  }

  /// Whether what is saved in the slot stays on this device: that was declared, or something is under its local key, as of files that were
  /// tracked before they could be synced.
  package func isLocal(_ slot: String) throws -> Bool {
    try localDeclaration(of: slot) != nil || isTaken(SlotKey(text: slot).local)
  }

  private func isTaken(_ key: SlotKey) throws -> Bool {
    try heads(of: key).contains { try version($0)?.record.tombstone == false }
  }

  /// The key of the slot's versions that the game sees.
  package func key(of slot: String) throws -> SlotKey {
    let key = SlotKey(text: slot)
    return try isLocal(slot) ? key.local : key
  }

  /// Every slot of which that is true. Costs a query, and the records of what is under local keys.
  package func localSlots() throws -> Set<String> {
    let names = try String.fetchAll(
      statement("SELECT name FROM fact WHERE name > ? AND name < ?"), arguments: [Self.declarations, Self.declarationsEnd])
    let declared = names.map { String(decoding: $0.utf8.dropFirst(Self.declarations.utf8.count), as: UTF8.self) }
    var slots = Set(try declared.filter { try localDeclaration(of: $0) != nil })
    let keys = try String.fetchAll(statement("SELECT DISTINCT slot FROM head WHERE slot >= char(1) AND slot < char(2)"))
    for key in keys.map(SlotKey.init(text:)) where try isTaken(key) { slots.insert(key.slot) }
    return slots
  }

  package func staysHere(_ slot: String) throws -> Bool { try isLocal(slot) }

  /// The pinned versions of a slot, here and there.
  package func pinned(in slot: String) throws -> Set<VersionID> {
    try pinnedVersions(of: slot).union(pinnedVersions(of: SlotKey(text: slot).local.text))
  }

  /// The versions of a slot that are kept whole, those that were made while it stayed here among them, newest first in the order in which this
  /// store came to know them.
  package func wholeHistory(of slot: String) throws -> [StoredVersion] {
    let local = SlotKey(text: slot).local
    let all = try versions(
      "SELECT \(VersionRow.columns) FROM version WHERE slot IN (?, ?) AND NOT thinned ORDER BY position DESC", [slot, local.text])
    guard try !isLocal(slot) else { return all }
    // What only says that the slot went back to the cloud is no delete.
    let ends = Set(try heads(of: local))
    return all.filter { !ends.contains($0.record.id) }
  }
}

/// From which version the file on this device came that a game tracks: what its next version replaces.
///
/// It belongs to the store, because the file outlives the game: what other devices wrote meanwhile isn't in it.
extension StoreTransaction {
  private static let fileBases = "file base/"

  package func fileBase(of slot: String) throws -> VersionID? { try fact(Self.fileBases + slot) }

  package mutating func setFileBase(_ id: VersionID, of slot: String) throws {
    guard try fileBase(of: slot) != id else { return }
    try setFact(Self.fileBases + slot, id)
  }
}
