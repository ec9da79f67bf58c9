// What happens to contents that a device found damaged.
extension CloudAcceptance {
  /// Keeps a content. One that stands in for a damaged one is told of once more, for there are devices that gave it up.
  package static func put(
    _ content: EncodedContent, in storage: inout some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws {
    let heals = try storage.isSuspect(content.hash)
    try storage.putContent(content)
    if heals { try announce(content.hash, in: &storage, using: &random) }
  }

  /// Gives the heads that need a content a new place among the changes, so that every device looks once more whether it has all of them.
  package static func announce(
    _ hash: ContentHash, in storage: inout some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws {
    for id in try storage.heads(needing: hash) {
      guard var version = try storage.version(id) else { continue }
      version.seq = try advance(&storage, using: &random)
      try storage.putVersion(version)
    }
  }

  /// Some of what is damaged here; not always the same where it is much, because some of it may be what no device has.
  static func wanted(
    of storage: some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws -> [ContentHash] {
    let suspect = try storage.suspectContents()
    guard suspect.count > ExchangeRules.maximumWanted else { return suspect }
    let first = Int(random.next() % UInt64(suspect.count))
    return (0..<ExchangeRules.maximumWanted).map { suspect[(first + $0) % suspect.count] }.sorted()
  }
}
