import KeepsakeReplication

extension StoreTransaction {
  /// Appends to the outbox what the cloud may lack, as if it had just been committed, in groups of the usual size.
  ///
  /// - Parameter versions: A replacing version before those that it replaces, so that the cloud never mistakes history
  ///   for a head.
  mutating func offerAgain(_ versions: [VersionRecord], _ cells: [CellUpdate]) throws {
    var pieces = OutboxPieces(
      cells: DeviceCommit.maximumGroupCells, versions: DeviceCommit.maximumGroupVersions,
      bytes: DeviceCommit.maximumGroupBytes, isPiece: true)
    for record in versions { try pieces.add(record, to: &self) }
    try pieces.end(in: &self)
    for cell in cells { try pieces.add(cell, to: &self) }
    try pieces.end(in: &self)
  }
}
