/// Contents whose downloads failed: how often each failed, and which ones the device goes on without.
struct ContentFailures: Sendable {
  /// Contents that the cloud didn't have when they were requested, until an exchange has looked since.
  private(set) var gone: Set<ContentHash> = []
  /// Contents that aren't requested any more.
  private(set) var givenUp: Set<ContentHash> = []
  private var counts: [ContentHash: Int] = [:]

  /// Counts a failure.
  ///
  /// - Parameter limit: The number of failures at which the content is given up.
  /// - Returns: Whether that was the last one: the content is given up.
  mutating func failed(_ hash: ContentHash, atMost limit: Int) -> Bool {
    let count = (counts[hash] ?? 0) + 1
    counts[hash] = count
    if count >= limit { givenUp.insert(hash) }
    return count >= limit
  }

  /// Goes on without a content.
  mutating func giveUp(_ hash: ContentHash) { givenUp.insert(hash) }

  /// Allows a content that was given up all its attempts once more. Others keep their count.
  mutating func retry(_ hash: ContentHash) {
    if givenUp.remove(hash) != nil { counts[hash] = nil }
  }

  /// Records that the cloud doesn't have a content: an exchange has to find out what became of its version.
  mutating func isGone(_ hash: ContentHash) { gone.insert(hash) }

  /// Forgets that these contents are gone, because an exchange has looked since.
  mutating func looked(for hashes: Set<ContentHash>) { gone.subtract(hashes) }

  /// Forgets all failures: the cause of giving up may be gone.
  mutating func reset() { self = ContentFailures() }
}
