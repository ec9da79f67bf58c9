package import Foundation

/// How far a device has followed a container: the cloud's count of changes, and the random mark that was committed with it.
///
/// A mark that no longer stands at its seq tells that the cloud was restored from a backup.
package struct Cursor: Hashable, Sendable, Codable {
  /// Where a device starts that has never heard from the container.
  package static let start = Cursor(epoch: 0, seq: 0, mark: 0)
  /// Numbers above this are refused, so that arithmetic on them can't overflow.
  package static let maximumSeq: UInt64 = 1 << 62

  package var epoch: UInt64
  package var seq: UInt64
  package var mark: UInt64

  package init(epoch: UInt64, seq: UInt64, mark: UInt64) {
    self.epoch = epoch
    self.seq = seq
    self.mark = mark
  }
}

/// A content as it is kept or sent: a zstd frame, alone or with the plain bytes of another content as its prefix.
package struct EncodedContent: Hashable, Sendable, Codable {
  package var hash: ContentHash
  /// Plain bytes.
  package var length: Int
  /// The content whose plain bytes the frame takes as its prefix; nil for a full frame.
  package var base: ContentHash?
  /// The zstd frame.
  package var bytes: Data

  package init(hash: ContentHash, length: Int, base: ContentHash?, bytes: Data) {
    self.hash = hash
    self.length = length
    self.base = base
    self.bytes = bytes
  }
}

/// What a device sends: what it has written since, and how far it has followed.
package struct ExchangeRequest: Hashable, Sendable, Codable {
  package static let currentProtocol = 1

  package var protocolVersion: Int
  package var cursor: Cursor
  /// Applied in one transaction, all or none, with `versions`.
  package var cells: [CellUpdate]
  package var versions: [VersionRecord]
  /// Small contents that the versions need; large ones are put before the exchange.
  package var contents: [EncodedContent]
  package var wallet: WalletOffer?
  /// The most changes that the answer may carry.
  package var limit: Int

  package init(
    cursor: Cursor, cells: [CellUpdate] = [], versions: [VersionRecord] = [], contents: [EncodedContent] = [],
    wallet: WalletOffer? = nil, limit: Int
  ) {
    self.protocolVersion = Self.currentProtocol
    self.cursor = cursor
    self.cells = cells
    self.versions = versions
    self.contents = contents
    self.wallet = wallet
    self.limit = limit
  }
}

/// What became of the cells and versions that a device sent.
package enum ExchangeOutcome: Hashable, Sendable, Codable {
  /// Nothing was sent.
  case nothing
  /// All applied; the newest of them at this seq. They are certain once the cursor held has passed it.
  case accepted(seq: UInt64)
  /// None applied: the cloud lacks these contents (or bases of deltas).
  case missing([ContentHash])
  /// None applied, for good until the cause is gone.
  case refused([Refusal])
}

/// Why one item can't be taken.
package struct Refusal: Hashable, Sendable, Codable {
  package enum Reason: String, Hashable, Sendable, Codable {
    case tooLarge, invalid, quota
  }
  /// The cell's key or the version's id, in words.
  package var item: String
  package var reason: Reason
  /// A sentence that a person can act on.
  package var message: String

  package init(item: String, reason: Reason, message: String) {
    self.item = item
    self.reason = reason
    self.message = message
  }
}

/// What the cloud answers.
package struct ExchangeResponse: Hashable, Sendable, Codable {
  package var outcome: ExchangeOutcome
  /// The device's cursor is not of this container's history: it starts again at `Cursor.start` of `cursor.epoch` and offers
  /// everything that it holds.
  package var restart: Bool
  /// Changes after the request's cursor, in the order of their seq, at most `limit` in all.
  package var changes: [CloudChange]
  /// Small contents of the versions above, where the device is likely to hold their bases.
  package var contents: [EncodedContent]
  package var wallet: WalletReply?
  /// Where the device stands after this page.
  package var cursor: Cursor
  /// There are more changes: ask again.
  package var more: Bool
  package var serverTimeMilliseconds: Int64

  package init(
    outcome: ExchangeOutcome, restart: Bool = false, changes: [CloudChange], contents: [EncodedContent],
    wallet: WalletReply?, cursor: Cursor, more: Bool, serverTimeMilliseconds: Int64
  ) {
    self.outcome = outcome
    self.restart = restart
    self.changes = changes
    self.contents = contents
    self.wallet = wallet
    self.cursor = cursor
    self.more = more
    self.serverTimeMilliseconds = serverTimeMilliseconds
  }
}

/// One change of a container.
package struct CloudChange: Hashable, Sendable, Codable {
  package enum Item: Hashable, Sendable, Codable {
    case cell(CellUpdate)
    case version(VersionRecord)
  }
  package var seq: UInt64
  package var item: Item

  package init(seq: UInt64, item: Item) {
    self.seq = seq
    self.item = item
  }
}

/// What the event stream says: the container has come this far.
package struct CloudEvent: Hashable, Sendable, Codable {
  package var seq: UInt64

  package init(seq: UInt64) { self.seq = seq }
}
