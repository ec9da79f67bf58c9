/// Looks for contents that others can be sent as deltas of.
struct DeltaBases {
  /// The most versions in a version's past that are searched for a base.
  static let maximumLookBack = 64

  struct Base {
    /// The nearest content that the cloud has.
    var known: (hash: ContentHash, depth: Int)?
    /// A nearer one that is being uploaded.
    var uploading: ContentHash?
  }

  /// A content with this many bases or more is too slow to decode to serve as a base itself.
  private let maximumDepth: Int
  /// By the version to be encoded, then by the older one.
  private var alignments: [VersionID: [VersionID: [ContentHash?]]] = [:]

  init(maximumDepth: Int) { self.maximumDepth = maximumDepth }

  /// Returns the nearest contents in a version's past that the cloud has, or will have, and can decode quickly.
  ///
  /// - Parameters:
  ///   - hash: The content to be encoded.
  ///   - index: Its index among the contents of `record`.
  ///   - uploading: Contents being uploaded.
  /// - Returns: An empty base if there is none.
  mutating func base(
    for hash: ContentHash, at index: Int, of record: VersionRecord, uploading: Set<ContentHash>,
    in storage: some DeviceStorage
  ) throws -> Base {
    var base = Base()
    var seen: Set<VersionID> = [record.id]
    var next = record.covers
    var looked = 0
    while !next.isEmpty {
      var further: [VersionID] = []
      for id in next where seen.insert(id).inserted {
        looked += 1
        guard looked <= Self.maximumLookBack else { return base }
        guard let older = try storage.version(id)?.record else { continue }
        let candidate = try aligned(record, to: older, in: storage)[index]
        further += older.covers
        guard let candidate, candidate != hash else { continue }
        if let depth = try storage.cloudDepth(of: candidate), depth < maximumDepth, try storage.hasContent(candidate) {
          base.known = (candidate, depth)
          return base
        }
        if base.uploading == nil, uploading.contains(candidate) { base.uploading = candidate }
      }
      next = further
    }
    return base
  }

  /// Returns for each content of a version the one of the older version that it changed from.
  private mutating func aligned(
    _ record: VersionRecord, to older: VersionRecord, in storage: some DeviceStorage
  ) throws -> [ContentHash?] {
    if let known = alignments[record.id]?[older.id] { return known }
    let bases = try ContentAlignment(of: storage.parts(of: record), in: storage.parts(of: older)).bases
    alignments[record.id, default: [:]][older.id] = bases
    return bases
  }
}
