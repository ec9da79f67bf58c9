/// An exchange in flight, as it was sent.
struct SentExchange: Sendable {
  var cursor: Cursor
  /// The groups of the outbox as they were then.
  var groups: [OutboxGroup] = []
  /// Versions that were sent, and versions that weren't because one of the former replaces them.
  var versions: [VersionID] = []
  var skipped: [VersionID] = []
  /// Those of `versions` that nobody else could have known before.
  var newlyOffered: [VersionID] = []
  /// Contents inside it.
  var contents: [EncodedContent] = []
  var hasWallet = false
  /// What had been announced when it was sent.
  var announced: UInt64 = 0
  /// Contents that had turned out to be gone from the cloud.
  var gone: Set<ContentHash> = []
  /// Contents that it reported as damaged in the cloud.
  var damaged: [ContentHash] = []
  /// Set if only this part of the groups was sent.
  var part: OfferPart?
  /// What it confirmed of a store that went back.
  var setBack: SetBack?
}
