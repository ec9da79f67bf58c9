// How contents that a device found damaged are handled.
extension CloudAcceptance {
  /// Stores a content. If it replaces a damaged one, the heads that need it are announced again, because some devices
  /// gave it up.
  package static func put(
    _ content: EncodedContent, in storage: inout some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws {
    let heals = try storage.isSuspect(content.hash)
    try storage.putContent(content)
    if heals { try announce(content.hash, in: &storage, using: &random) }
  }

  /// Gives the heads that need a content a new seq, so that every device checks again whether it has all of their
  /// contents.
  package static func announce(
    _ hash: ContentHash, in storage: inout some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws {
    for id in try storage.heads(needing: hash) {
      guard var version = try storage.version(id) else { continue }
      version.seq = try advance(&storage, using: &random)
      try storage.putVersion(version)
    }
  }

  /// Returns some of the contents that are damaged here; not always the same ones if there are many, because some may
  /// exist on no device.
  static func wanted(
    of storage: some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws -> [ContentHash] {
    let suspect = try storage.suspectContents()
    guard suspect.count > ExchangeRules.maximumWanted else { return suspect }
    let first = Int(random.next() % UInt64(suspect.count))
    return (0..<ExchangeRules.maximumWanted).map { suspect[(first + $0) % suspect.count] }.sorted()
  }
}
