/// How the data of another store is added to this one: it is joined, and to the cloud it is like what a fresh install
/// wrote before it first fetched.
extension DeviceCommit {
  /// What happened to the adopted values.
  package struct AdoptedCells: Hashable, Sendable {
    /// Sorted.
    package var changed: [CellKey] = []
    /// Values that both stores together filled to more than any cloud accepts; this store's own stay as they are.
    package var refused: [CellKey] = []
  }

  /// Joins the cells of another store, and adds what changes to `groups`. Joining the same cells again changes nothing.
  package static func adopt(
    _ cells: [CellUpdate], into groups: inout AdoptedGroups, in storage: inout some DeviceStorage
  ) throws -> AdoptedCells {
    var adopted = AdoptedCells()
    for cell in cells {
      let offered = CellUpdate(key: cell.key, state: cell.state.beforeCatchUp)
      let known = try storage.cell(cell.key)
      let joined = CellUpdate(key: cell.key, state: known?.joined(with: offered.state) ?? offered.state)
      guard joined.state != known else { continue }
      guard ExchangeRules.objection(to: joined) == nil else {
        adopted.refused.append(cell.key)
        continue
      }
      try storage.setCell(joined)
      groups.append(offered)
      adopted.changed.append(cell.key)
    }
    return adopted
  }

  /// Returns whether a version of another store is new here: neither here nor replaced by a version that is here.
  package static func isUnknown(_ id: VersionID, in storage: some DeviceStorage) throws -> Bool {
    try storage.version(id) == nil && !storage.isCovered(id)
  }

  /// Adds a version of another store, unrelated to those that are here. Its contents have to be here.
  ///
  /// - Parameter isHead: Whether nothing replaced it there. A replaced version is history for this device alone, like
  ///   one that a device replaced before it was sent.
  package static func adopt(
    _ version: StoredVersion, isHead: Bool, into groups: inout AdoptedGroups, in storage: inout some DeviceStorage
  ) throws {
    var record = version.record
    for hash in record.contents where try !storage.hasContent(hash) {
      throw CommitError.missingContent(record.id, hash)
    }
    if isHead {
      record.provisional = true
      try storage.putVersion(StoredVersion(record: record, acknowledged: false, offered: true))
      groups.append(record)
    } else {
      try storage.markCovered(record.id)
      try storage.putVersion(StoredVersion(record: record, acknowledged: true, offered: !version.neverLeft))
    }
    for id in record.covers { try storage.markCovered(id) }
  }
}

/// What was adopted, as it is sent to the cloud: together, or in parts if it is more than one exchange carries.
package struct AdoptedGroups: Sendable {
  private var groups = [OutboxGroup()]
  private var bytes = 0

  package init() {}

  fileprivate mutating func append(_ cell: CellUpdate) {
    makeRoom(cell.size) { $0.cells.count < ExchangeRules.maximumCells }
    groups[groups.count - 1].cells.append(cell)
  }

  fileprivate mutating func append(_ record: VersionRecord) {
    makeRoom(record.size) { $0.versions.count < ExchangeRules.maximumVersions }
    groups[groups.count - 1].versions.append(record.id)
  }

  private mutating func makeRoom(_ size: Int, _ hasPlace: (OutboxGroup) -> Bool) {
    let last = groups[groups.count - 1]
    let isEmpty = last.cells.isEmpty && last.versions.isEmpty
    if !isEmpty, bytes + size > ExchangeRules.maximumCommitBytes || !hasPlace(last) {
      groups.append(OutboxGroup())
      bytes = 0
    }
    bytes += size
  }

  /// Appends everything to the outbox.
  package func enter(_ storage: inout some DeviceStorage) throws {
    for var group in groups where !group.cells.isEmpty || !group.versions.isEmpty {
      group.cells.sort { $0.key < $1.key }
      try storage.appendToOutbox(group)
    }
  }
}
