/// A content that arrived before its base.
struct HeldContent: Sendable {
  var content: EncodedContent
  /// The content that a version needs.
  var root: ContentHash
  /// How many contents there are from this one to the root, including the root.
  var depth: Int
}

/// Contents that arrived before their bases and wait for them.
struct HeldContents: Sendable {
  /// The most bases that are followed for one content. Senders stop at `Options.maximumDepth` as far as they know;
  /// where two devices sent the same content in different encodings, the cloud's chain may be a few times as long.
  static let maximumChain = 256

  private(set) var all: [HeldContent] = []

  var hashes: Set<ContentHash> { Set(all.map(\.content.hash)) }
  var isEmpty: Bool { all.isEmpty }

  func contains(_ hash: ContentHash) -> Bool { all.contains { $0.content.hash == hash } }

  /// Returns whether a waiting content is a delta of this one.
  func needs(_ base: ContentHash) -> Bool { all.contains { $0.content.base == base } }

  /// Returns the contents that versions need and that wait for this one; the content itself, if nothing waits for it.
  func roots(of hash: ContentHash) -> [ContentHash] {
    let roots = Set(all.filter { $0.content.base == hash }.map(\.root)).sorted()
    return roots.isEmpty ? [hash] : roots
  }

  /// Holds a content until its base is here.
  ///
  /// - Parameter content: A content with a base; one without, or one that is already held, changes nothing.
  /// - Returns: False if its bases form a cycle or too long a chain, which no sender produces. It isn't held then.
  mutating func hold(_ content: EncodedContent) -> Bool {
    guard let base = content.base, !contains(content.hash) else { return true }
    let dependent = all.filter { $0.content.base == content.hash }.max { $0.depth < $1.depth }
    let (root, depth) = (dependent?.root ?? content.hash, (dependent?.depth ?? 0) + 1)
    guard depth <= Self.maximumChain, !leads(from: base, to: content.hash) else { return false }
    all.append(HeldContent(content: content, root: root, depth: depth))
    return true
  }

  /// Removes the contents that are deltas of this one.
  ///
  /// - Returns: Those contents, in the order in which they arrived.
  mutating func release(for base: ContentHash) -> [EncodedContent] {
    let released = all.filter { $0.content.base == base }.map(\.content)
    all.removeAll { $0.content.base == base }
    return released
  }

  mutating func remove(_ hash: ContentHash) { all.removeAll { $0.content.hash == hash } }
  mutating func removeAll(neededBy root: ContentHash) { all.removeAll { $0.root == root } }

  /// Removes contents that none of these needs.
  mutating func keepOnly(neededBy roots: Set<ContentHash>) { all.removeAll { !roots.contains($0.root) } }

  /// Returns whether the bases of a content lead to another one, following what is held.
  private func leads(from hash: ContentHash, to other: ContentHash) -> Bool {
    let bases = Dictionary(all.map { ($0.content.hash, $0.content.base) }, uniquingKeysWith: { first, _ in first })
    var next: ContentHash? = hash
    // More steps than there are contents mean a cycle.
    for _ in 0...all.count + 1 {
      guard let hash = next else { return false }
      if hash == other { return true }
      next = bases[hash] ?? nil
    }
    return true
  }
}
