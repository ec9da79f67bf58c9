/// Builds groups of the outbox, none of them larger than its limits.
package struct OutboxPieces {
  private let maximumCells: Int
  private let maximumVersions: Int
  private let maximumBytes: Int
  private let isPiece: Bool
  private var group: OutboxGroup
  private var bytes = 0

  /// - Parameter isPiece: Whether the groups are pieces of all that a store holds.
  package init(cells: Int, versions: Int, bytes: Int, isPiece: Bool) {
    (maximumCells, maximumVersions, maximumBytes) = (cells, versions, bytes)
    self.isPiece = isPiece
    group = OutboxGroup(isPiece: isPiece)
  }

  /// Adds a version, to the next group if this one is full.
  package mutating func add(_ record: VersionRecord, to storage: inout some DeviceStorage) throws {
    if group.versions.count >= maximumVersions || bytes + record.size > maximumBytes { try end(in: &storage) }
    group.versions.append(record.id)
    bytes += record.size
  }

  /// Adds a cell, to the next group if this one is full.
  package mutating func add(_ update: CellUpdate, to storage: inout some DeviceStorage) throws {
    if group.cells.count >= maximumCells || bytes + update.size > maximumBytes { try end(in: &storage) }
    group.cells.append(update)
    bytes += update.size
  }

  /// Appends the group to the outbox, unless it is empty.
  package mutating func end(in storage: inout some DeviceStorage) throws {
    guard !group.cells.isEmpty || !group.versions.isEmpty else { return }
    try storage.appendToOutbox(group)
    (group, bytes) = (OutboxGroup(isPiece: isPiece), 0)
  }
}
