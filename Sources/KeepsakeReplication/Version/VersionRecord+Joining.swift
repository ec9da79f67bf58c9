// Comparing and joining two records of one version, and omitting parts of one.
extension VersionRecord {
  /// Returns whether everything is equal that never changes: what a version covers may grow, it may stop being
  /// provisional, and what people see of it may have been omitted.
  package func isSame(as other: VersionRecord) -> Bool {
    var (own, other) = (self, other)
    other.covers = own.covers
    other.provisional = own.provisional
    own.metadata.complete(from: other.metadata)
    other.metadata.complete(from: own.metadata)
    return own == other
  }

  /// Returns what both records contain about the same version. Where they contradict each other this one wins, whatever
  /// a cloud sends.
  package func joined(with other: VersionRecord) -> VersionRecord {
    var joined = self
    joined.covers = Set(covers).union(other.covers).sorted()
    joined.provisional = provisional && other.provisional
    joined.metadata.complete(from: other.metadata)
    return joined
  }

  /// The record without what people see of a version that can be loaded: of one that was replaced long ago a device
  /// needs to know only how it relates to the others. What decides between versions stays, and so do the hashes of the
  /// contents, which a merge may start from.
  package var withoutLabels: VersionRecord {
    var record = self
    (record.metadata.title, record.metadata.thumbnail, record.metadata.custom) = (nil, nil, [:])
    return record
  }
}

extension SaveMetadata {
  /// Takes over what was omitted here.
  fileprivate mutating func complete(from other: SaveMetadata) {
    title = title ?? other.title
    thumbnail = thumbnail ?? other.thumbnail
    if custom.isEmpty { custom = other.custom }
  }
}
