/// Which versions of a slot cover which, while some are taken out.
///
/// A version can be taken out if all others that cover it descend from one of them, its **heir**: then every descendant
/// of it is the heir or descends from the heir, so that the version is the nearest common ancestor of no two others.
/// The heir keeps the id among its covers, and adds the covers of the version that was taken out. So which of the
/// remaining versions descend from which, and from which known versions any two of them come, stays exactly the same.
struct VersionGraph {
  /// More coverers than this, or a longer way between two of them, aren't searched for an heir.
  private static let maximumCoverers = 16
  private static let maximumWalk = 512

  private(set) var versions: [VersionID: SequencedVersion]
  private var covers: [VersionID: Set<VersionID>] = [:]
  /// By id, with or without a version, the versions that cover it.
  private var coverers: [VersionID: Set<VersionID>] = [:]
  /// Versions whose covers have changed, of those that are left.
  private(set) var rewritten: Set<VersionID> = []
  private(set) var removed: [VersionID] = []
  private(set) var forgotten: Set<VersionID> = []

  init(_ versions: [VersionID: SequencedVersion]) {
    self.versions = versions
    for (id, version) in versions {
      covers[id] = Set(version.record.covers)
      for older in version.record.covers { coverers[older, default: []].insert(id) }
    }
  }

  /// Returns what a version covers, sorted.
  func covers(of id: VersionID) -> [VersionID] { (covers[id] ?? []).sorted() }

  func coverCount(of id: VersionID) -> Int { covers[id]?.count ?? 0 }

  /// Returns the ids among a version's covers of which there is no version, sorted.
  func pureIDs(of id: VersionID) -> [VersionID] { (covers[id] ?? []).filter { versions[$0] == nil }.sorted() }

  /// Returns the lowest seq of the versions that cover an id; nil if none does. It was covered by then.
  func replacedSeq(of id: VersionID) -> UInt64? { coverers[id]?.compactMap { versions[$0]?.seq }.min() }

  /// Returns the highest of them.
  func lastCoveringSeq(of id: VersionID) -> UInt64? { coverers[id]?.compactMap { versions[$0]?.seq }.max() }

  /// Returns the version that covers an id and from which all others descend that cover it; nil if there is none.
  func heir(of id: VersionID) -> VersionID? {
    guard let found = coverers[id], let first = found.first else { return nil }
    if found.count == 1 { return first }
    guard found.count <= Self.maximumCoverers else { return nil }
    let ordered = found.sorted { (versions[$0]?.seq ?? 0, $0) < (versions[$1]?.seq ?? 0, $1) }
    return ordered.first { heir in ordered.allSatisfy { $0 == heir || descends($0, from: heir) } }
  }

  private func descends(_ younger: VersionID, from older: VersionID) -> Bool {
    var seen: Set<VersionID> = [younger]
    var open = [younger]
    while let id = open.popLast(), seen.count < Self.maximumWalk {
      guard let next = covers[id] else { continue }
      if next.contains(older) { return true }
      for id in next where versions[id] != nil && seen.insert(id).inserted { open.append(id) }
    }
    return false
  }

  /// Takes a version out. Its heir inherits what it covers.
  mutating func remove(_ id: VersionID, inheritedBy heir: VersionID?) {
    for older in covers.removeValue(forKey: id) ?? [] {
      coverers[older]?.remove(id)
      guard let heir else { continue }
      coverers[older, default: []].insert(heir)
      if covers[heir]?.insert(older).inserted == true { rewritten.insert(heir) }
    }
    versions[id] = nil
    rewritten.remove(id)
    removed.append(id)
  }

  /// Forgets an id of which there is no version.
  mutating func forget(_ id: VersionID) {
    for coverer in coverers.removeValue(forKey: id) ?? [] where covers[coverer]?.remove(id) != nil {
      rewritten.insert(coverer)
    }
    forgotten.insert(id)
  }
}
