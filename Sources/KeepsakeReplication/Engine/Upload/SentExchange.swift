/// An exchange in flight, as it was sent.
struct SentExchange: Sendable {
  var cursor: Cursor
  /// The outbox groups as they were then.
  var groups: [OutboxGroup] = []
  /// Versions that were sent, and versions that weren't because one of those replaces them.
  var versions: [VersionID] = []
  var skipped: [VersionID] = []
  /// Of `versions`, what nobody could have known before.
  var newlyOffered: [VersionID] = []
  /// Contents inside it.
  var contents: [EncodedContent] = []
  var hasWallet = false
  /// What had been announced when it was sent.
  var announced: UInt64 = 0
  /// Contents that had turned out to be gone.
  var gone: Set<ContentHash> = []
  /// Contents that it reported as damaged in the cloud.
  var damaged: [ContentHash] = []
  /// Set where only this part of the groups was sent.
  var part: OfferPart?
}
