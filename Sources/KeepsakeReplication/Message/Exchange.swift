package import Foundation

/// How far a device has followed a container: the cloud's count of changes, and the random mark that was committed with it.
///
/// A mark that no longer stands at its seq tells that the cloud was restored from a backup.
package struct Cursor: Hashable, Sendable, Codable {
  /// Where a device starts that has never heard from the container.
  package static let start = Cursor(epoch: 0, seq: 0, mark: 0)
  /// Numbers above this are refused, so that arithmetic on them can't overflow.
  package static let maximumSeq: UInt64 = 1 << 62

  /// A place in a history.
  package struct Mark: Hashable, Sendable, Codable {
    package var seq: UInt64
    package var mark: UInt64

    package init(seq: UInt64, mark: UInt64) {
      self.seq = seq
      self.mark = mark
    }
  }

  package var epoch: UInt64
  package var seq: UInt64
  package var mark: UInt64
  /// While more pages follow: how far the cloud had come when it gave the last one. What changed meanwhile has left its old seq for a
  /// later one; if the cloud is then restored from a backup, it is back at a seq that this device has passed.
  package var ahead: Mark?

  package init(epoch: UInt64, seq: UInt64, mark: UInt64, ahead: Mark? = nil) {
    self.epoch = epoch
    self.seq = seq
    self.mark = mark
    self.ahead = ahead
  }
}

/// A content as it is kept or sent: a zstd frame, alone or with the plain bytes of another content as its prefix.
package struct EncodedContent: Hashable, Sendable {
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
package struct ExchangeRequest: Hashable, Sendable {
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
  /// Contents of the cloud that came damaged: it asks other devices for them.
  package var damaged: [ContentHash]
  /// Set where cells and versions are only a part of what has to be taken together.
  package var part: OfferPart?
  /// Of what the cursor has passed something isn't shown yet, or not all here: it doesn't count as seen by this device.
  package var hasStaged: Bool

  package init(
    cursor: Cursor, cells: [CellUpdate] = [], versions: [VersionRecord] = [], contents: [EncodedContent] = [],
    wallet: WalletOffer? = nil, limit: Int, damaged: [ContentHash] = [], part: OfferPart? = nil, hasStaged: Bool = false
  ) {
    self.protocolVersion = Self.currentProtocol
    self.cursor = cursor
    self.cells = cells
    self.versions = versions
    self.contents = contents
    self.wallet = wallet
    self.limit = limit
    self.damaged = damaged
    self.part = part
    self.hasStaged = hasStaged
  }
}

/// What became of the cells and versions that a device sent.
package enum ExchangeOutcome: Hashable, Sendable {
  /// All applied; the newest of them at this seq. They are certain once the cursor held has passed it.
  case accepted(seq: UInt64)
  /// None applied: the cloud lacks these contents (or bases of deltas).
  case missing([ContentHash])
  /// None applied, for good until the cause is gone.
  case refused([Refusal])
  /// None applied yet: so many parts of the offer are kept, from the first on, and the next one is expected.
  case held(parts: Int)
}

/// Why one item can't be taken.
package struct Refusal: Hashable, Sendable, Codable {
  /// Why, as a stable word. A word that this program doesn't know is carried as it is: a later cloud may have more of them.
  package struct Reason: RawRepresentable, Hashable, Sendable, Codable {
    package static let tooLarge = Reason(rawValue: "tooLarge")
    package static let invalid = Reason(rawValue: "invalid")
    package static let quota = Reason(rawValue: "quota")

    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }
  }
  /// The cell's key or the version's id, in words.
  package var item: String
  package var reason: Reason
  /// A sentence that a person can act on.
  package var message: String
  /// With the reason `quota`: how much there is, and how much all that was refused together would take.
  package var quota: QuotaShortage?

  package init(item: String, reason: Reason, message: String, quota: QuotaShortage? = nil) {
    self.item = item
    self.reason = reason
    self.message = message
    self.quota = quota
  }
}

/// What the cloud answers.
package struct ExchangeResponse: Hashable, Sendable {
  /// Nil where neither cells nor versions were sent, or none were looked at.
  package var outcome: ExchangeOutcome?
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
  /// Contents that are damaged in the cloud: whoever has them puts them again, in full.
  package var wanted: [ContentHash]
  /// Nil in a cloud that gives players no quota.
  package var quota: QuotaUse?

  package init(
    outcome: ExchangeOutcome?, restart: Bool = false, changes: [CloudChange], contents: [EncodedContent],
    wallet: WalletReply?, cursor: Cursor, more: Bool, serverTimeMilliseconds: Int64, wanted: [ContentHash] = [], quota: QuotaUse? = nil
  ) {
    self.outcome = outcome
    self.restart = restart
    self.changes = changes
    self.contents = contents
    self.wallet = wallet
    self.cursor = cursor
    self.more = more
    self.serverTimeMilliseconds = serverTimeMilliseconds
    self.wanted = wanted
    self.quota = quota
  }
}

/// One change of a container.
package struct CloudChange: Hashable, Sendable {
  package enum Item: Hashable, Sendable {
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

/// What the event stream says: the container has come this far, and where it is little, by what.
package struct CloudEvent: Hashable, Sendable {
  /// All that one exchange changed.
  package struct Step: Hashable, Sendable {
    /// Where the container stood before, and after.
    package var after: Cursor
    package var cursor: Cursor
    /// In the order of their seq.
    package var changes: [CloudChange]
    package var contents: [EncodedContent]

    package init(after: Cursor, cursor: Cursor, changes: [CloudChange], contents: [EncodedContent]) {
      self.after = after
      self.cursor = cursor
      self.changes = changes
      self.contents = contents
    }
  }
  package var seq: UInt64
  /// Nil where it is too much for an event, or where more than cells and versions changed: an exchange tells.
  package var step: Step?
  /// The cursor that the listener named, if it is not of this container's history: an exchange from there would be answered by a restart.
  package var unknown: Cursor?

  package init(seq: UInt64, step: Step? = nil, unknown: Cursor? = nil) {
    self.seq = seq
    self.step = step
    self.unknown = unknown
  }
}
