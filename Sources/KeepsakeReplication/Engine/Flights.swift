// What is on its way, and what waits to be.

/// An exchange under way, as it was sent.
struct SentExchange: Sendable {
  var cursor: Cursor
  /// The outbox groups as they stood then.
  var groups: [OutboxGroup] = []
  /// Versions that went, and versions that didn't because one of those replaces them.
  var versions: [VersionID] = []
  var skipped: [VersionID] = []
  /// Of `versions`, what nobody could have known before.
  var newlyOffered: [VersionID] = []
  /// Contents that went along.
  var contents: [EncodedContent] = []
  var hasWallet = false
  /// What had been announced when it was sent.
  var announced: UInt64 = 0
  /// What had turned out to be gone.
  var gone: Set<ContentHash> = []
  /// What the cloud was told to be damaged there.
  var damaged: [ContentHash] = []
  /// Set where only this part of the groups went.
  var part: OfferPart?
}

/// A content under way.
struct Transfer: Sendable {
  var request: UInt64
  var isUpload: Bool
  var hash: ContentHash
  /// What it takes on the wire: known of an upload, guessed of a download.
  var bytes: Int
  /// Of an upload: what it leans on, and how many bases the cloud has to decode for it.
  var base: ContentHash?
  var depth = 0
  /// The version counts as offered only since this began: a later save of the slot gets a group of its own, and this one's doesn't change
  /// while its contents are on their way.
  var marked = false
  /// Whose content it is.
  var status: EngineTransfer
}

/// A content that has to be in the cloud before its version can be told of.
struct PlannedUpload: Sendable {
  var hash: ContentHash
  var version: VersionRecord
  var index: Int
  /// What it takes on the wire.
  var bytes: Int
  /// As it will go, if it was just encoded.
  var content: EncodedContent?
  var depth: Int
  /// Plain bytes of the content, and of all contents of the version that have to be put.
  var length: Int
  var lengthInAll = 0
}

/// A content that doesn't fit into an exchange.
struct LargeContent: Sendable {
  var bytes: Int
  /// A content on its way that this one will be a small delta of.
  var waitsFor: ContentHash?
}

/// A content that a staged version needs.
struct Need: Sendable {
  var hash: ContentHash
  var slot: String
  var version: VersionID
  /// Plain bytes, guessed from the length of the version.
  var length: Int
  /// Of a save that shows already, without its contents: nothing waits for it but whoever asked.
  var isAsked = false
}

/// A content that came before its base.
struct HeldContent: Sendable {
  var content: EncodedContent
  /// What is needed in the end.
  var root: ContentHash
  /// How many contents lean on it on the way there.
  var depth: Int
}

/// Whose failure it was.
enum Source: Hashable, Sendable {
  case exchange
  case content(ContentHash)
}
