/// Contents whose downloads failed: how often each failed, and which the device goes on without.
struct ContentFailures: Sendable {
  /// Contents that the cloud didn't have when they were asked for, as long as no exchange has looked since.
  private(set) var gone: Set<ContentHash> = []
  /// Contents that aren't asked for any more.
  private(set) var givenUp: Set<ContentHash> = []
  private var counts: [ContentHash: Int] = [:]

  /// Counts a failure.
  ///
  /// - Parameter limit: How many failures in all are too many.
  /// - Returns: Whether that was the last one: the content is given up.
  mutating func failed(_ hash: ContentHash, atMost limit: Int) -> Bool {
    let count = (counts[hash] ?? 0) + 1
    counts[hash] = count
    if count >= limit { givenUp.insert(hash) }
    return count >= limit
  }

  /// Goes on without a content.
  mutating func giveUp(_ hash: ContentHash) { givenUp.insert(hash) }

  /// A content that was given up gets all its tries once more. Others keep their count.
  mutating func retry(_ hash: ContentHash) {
    if givenUp.remove(hash) != nil { counts[hash] = nil }
  }

  /// The cloud doesn't have a content: an exchange has to look what became of its version.
  mutating func isGone(_ hash: ContentHash) { gone.insert(hash) }

  /// An exchange has looked since these were gone.
  mutating func looked(for hashes: Set<ContentHash>) { gone.subtract(hashes) }

  /// Forgets all failures: what was given up may have lost its cause.
  mutating func reset() { self = ContentFailures() }
}
