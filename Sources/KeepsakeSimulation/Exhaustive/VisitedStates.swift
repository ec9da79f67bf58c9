/// The digests of the states that were visited, in an open hash table: 16 bytes an entry, and at most half of it full.
struct VisitedStates: Sendable {
  /// Pairs of words; two zeros for an empty position.
  private var words: [UInt64]
  private var mask: Int
  private(set) var count = 0

  init() {
    mask = (1 << 12) - 1
    words = [UInt64](repeating: 0, count: 2 << 12)
  }

  func contains(_ digest: StateDigest) -> Bool {
    let position = position(of: digest)
    return words[2 * position] | words[2 * position + 1] != 0
  }

  /// Adds a digest; returns false if it is here already.
  mutating func insert(_ digest: StateDigest) -> Bool {
    let position = position(of: digest)
    guard words[2 * position] | words[2 * position + 1] == 0 else { return false }
    words[2 * position] = digest.first
    words[2 * position + 1] = digest.second
    count += 1
    if 2 * count > mask { grow() }
    return true
  }

  /// The position that has the digest, or the one for it.
  private func position(of digest: StateDigest) -> Int { position(digest.first, digest.second) }

  private func position(_ first: UInt64, _ second: UInt64) -> Int {
    var position = Int(truncatingIfNeeded: first) & mask
    while words[2 * position] | words[2 * position + 1] != 0,
      words[2 * position] != first || words[2 * position + 1] != second
    { position = (position + 1) & mask }
    return position
  }

  private mutating func grow() {
    let old = words
    mask = 2 * mask + 1
    words = [UInt64](repeating: 0, count: 2 * (mask + 1))
    for index in stride(from: 0, to: old.count, by: 2) where old[index] | old[index + 1] != 0 {
      let position = position(old[index], old[index + 1])
      words[2 * position] = old[index]
      words[2 * position + 1] = old[index + 1]
    }
  }
}
