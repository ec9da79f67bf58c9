// What two records of one version have in common, and what of it may be left out.
extension VersionRecord {
  /// Equal in all that never changes: what a version covers may grow, being provisional may be lifted, and what people see of it may have been
  /// left out.
  package func isSame(as other: VersionRecord) -> Bool {
    var (own, other) = (self, other)
    other.covers = own.covers
    other.provisional = own.provisional
    own.metadata.complete(from: other.metadata)
    other.metadata.complete(from: own.metadata)
    return own == other
  }

  /// What both records say of the same version. Where they contradict each other this one stands, whatever a cloud says.
  package func joined(with other: VersionRecord) -> VersionRecord {
    var joined = self
    joined.covers = Set(covers).union(other.covers).sorted()
    joined.provisional = provisional && other.provisional
    joined.metadata.complete(from: other.metadata)
    return joined
  }

  /// Without what people see of a version that can be loaded: of one that was replaced long ago a device needs to know where it stands among
  /// the others. What decides between versions stays, and the names of the contents, which a merge may start from.
  package var withoutLabels: VersionRecord {
    var record = self
    (record.metadata.title, record.metadata.thumbnail, record.metadata.custom) = (nil, nil, [:])
    return record
  }
}

extension SaveMetadata {
  /// Takes what was left out here.
  fileprivate mutating func complete(from other: SaveMetadata) {
    title = title ?? other.title
    thumbnail = thumbnail ?? other.thumbnail
    if custom.isEmpty { custom = other.custom }
  }
}
