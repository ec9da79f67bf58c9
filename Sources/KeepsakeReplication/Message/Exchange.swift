package import Foundation

/// How far a device has followed a container: the cloud's count of changes, and the random mark that was committed with
/// it.
///
/// A mark that doesn't match its seq any more shows that the cloud was restored from a backup.
package struct Cursor: Hashable, Sendable, Codable {
  /// The cursor of a device that has never fetched from the container.
  package static let start = Cursor(epoch: 0, seq: 0, mark: 0)
  /// Numbers above this are refused, so that arithmetic on them can't overflow.
  package static let maximumSeq: UInt64 = 1 << 62

  /// A position in a container's history.
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
  /// Set while more pages follow: how far the cloud had come when it sent the last page. What changed meanwhile has
  /// moved from its old seq to a later one; if the cloud is then restored from a backup, it is back at a seq that this
  /// device has passed.
  package var ahead: Mark?

  package init(epoch: UInt64, seq: UInt64, mark: UInt64, ahead: Mark? = nil) {
    self.epoch = epoch
    self.seq = seq
    self.mark = mark
    self.ahead = ahead
  }
}

/// A content as it is stored or sent: a zstd frame, alone or with the plain bytes of another content as its prefix.
package struct EncodedContent: Hashable, Sendable {
  package var hash: ContentHash
  /// Plain bytes.
  package var length: Int
  /// The content whose plain bytes are the frame's prefix; nil for a full frame.
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

/// What a device sends: its changes, and how far it has followed the container.
package struct ExchangeRequest: Hashable, Sendable {
  package static let currentProtocol = 1

  package var protocolVersion: Int
  package var cursor: Cursor
  /// Applied in one transaction together with `versions`, all or none.
  package var cells: [CellUpdate]
  package var versions: [VersionRecord]
  /// Small contents that the versions need; large ones are uploaded before the exchange.
  package var contents: [EncodedContent]
  package var wallet: WalletOffer?
  /// The most changes that the response may carry.
  package var limit: Int
  /// Contents that the device received damaged: the cloud asks other devices for them.
  package var damaged: [ContentHash]
  /// Set if cells and versions are only a part of what has to be accepted together.
  package var part: OfferPart?
  /// Something that the cursor has passed isn't shown yet, or not all here: it doesn't count as seen by this device.
  package var hasStaged: Bool
  /// What a response has told this store: it confirms that the response has arrived. Nil if none has, or if a response
  /// to a confirmation has arrived.
  package var setBack: SetBack?

  package init(
    cursor: Cursor, cells: [CellUpdate] = [], versions: [VersionRecord] = [], contents: [EncodedContent] = [],
    wallet: WalletOffer? = nil, limit: Int, damaged: [ContentHash] = [], part: OfferPart? = nil,
    hasStaged: Bool = false, setBack: SetBack? = nil
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
    self.setBack = setBack
  }
}

/// What the cloud did with the cells and versions that a device sent.
package enum ExchangeOutcome: Hashable, Sendable {
  /// All applied, the newest of them at this seq. They are certain once the device's cursor has passed it.
  case accepted(seq: UInt64)
  /// None applied: the cloud lacks these contents, some of which may be bases of deltas.
  case missing([ContentHash])
  /// None applied, and sending them again won't help until the cause is gone.
  case refused([Refusal])
  /// None applied yet: this many parts of the offer are kept, from the first on, and the next one is expected.
  case held(parts: Int)
}

/// Why one item can't be accepted.
package struct Refusal: Hashable, Sendable, Codable {
  /// The reason as a stable word. A word that this program doesn't know is kept as it is: a later cloud may have more
  /// of them.
  package struct Reason: RawRepresentable, Hashable, Sendable, Codable {
    package static let tooLarge = Reason(rawValue: "tooLarge")
    package static let invalid = Reason(rawValue: "invalid")
    package static let quota = Reason(rawValue: "quota")
    package static let setBack = Reason(rawValue: "setBack")
    package static let readOnly = Reason(rawValue: "readOnly")

    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }
  }
  /// The name of a refusal that is about everything in a request.
  package static let everything = "all"

  /// The cell's key or the version's id, in words.
  package var item: String
  package var reason: Reason
  /// A sentence that a person can act on.
  package var message: String
  /// Set with the reason `quota`: how much room there is, and how much everything that was refused together would take.
  package var quota: QuotaShortage?

  package init(item: String, reason: Reason, message: String, quota: QuotaShortage? = nil) {
    self.item = item
    self.reason = reason
    self.message = message
    self.quota = quota
  }
}

/// The cloud's response to an exchange.
package struct ExchangeResponse: Hashable, Sendable {
  /// Nil if neither cells nor versions were sent, or none were processed.
  package var outcome: ExchangeOutcome?
  /// The device's cursor isn't part of this container's history: the device starts again at `Cursor.start` of
  /// `cursor.epoch` and offers everything that it holds.
  package var restart: Bool
  /// Set with `restart` if the cursor is only too old to be compared: the device fetches everything from the start, and
  /// offers nothing besides what it has queued.
  package var isBehind: Bool
  /// Changes after the request's cursor, in the order of their seq, at most `limit` in all.
  package var changes: [CloudChange]
  /// Small contents of the versions above, if the device is likely to have their bases.
  package var contents: [EncodedContent]
  package var wallet: WalletReply?
  /// The device's cursor after this page.
  package var cursor: Cursor
  /// There are more changes: the device has to ask again.
  package var more: Bool
  package var serverTimeMilliseconds: Int64
  /// Contents that are damaged in the cloud: a device that has them uploads them again, in full.
  package var wanted: [ContentHash]
  /// Nil in a cloud without a quota.
  package var quota: QuotaUse?
  /// Set if the request's cursor is older than one that this device has reported: the device confirms this in its next
  /// requests.
  package var setBack: SetBack?
  /// Set while the device is marked as set back, if the operator wants its game to know.
  package var setBackMark: SetBackMark?
  /// The device may only read: nothing of what it sends is taken, and its wallet gets no reply.
  package var isReadOnly: Bool

  package init(
    outcome: ExchangeOutcome?, restart: Bool = false, isBehind: Bool = false, changes: [CloudChange],
    contents: [EncodedContent],
    wallet: WalletReply?, cursor: Cursor, more: Bool, serverTimeMilliseconds: Int64, wanted: [ContentHash] = [],
    quota: QuotaUse? = nil, setBack: SetBack? = nil, setBackMark: SetBackMark? = nil,
    isReadOnly: Bool = false
  ) {
    self.outcome = outcome
    self.restart = restart
    self.isBehind = isBehind
    self.changes = changes
    self.contents = contents
    self.wallet = wallet
    self.cursor = cursor
    self.more = more
    self.serverTimeMilliseconds = serverTimeMilliseconds
    self.wanted = wanted
    self.quota = quota
    self.setBack = setBack
    self.setBackMark = setBackMark
    self.isReadOnly = isReadOnly
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

/// An event of the event stream: how far the container has come, and what changed if that is little.
package struct CloudEvent: Hashable, Sendable {
  /// Everything that one exchange changed.
  package struct Step: Hashable, Sendable {
    /// The container's position before and after.
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
  /// Nil if it is too much for an event, or if other things than cells and versions changed: an exchange fetches it.
  package var step: Step?
  /// The cursor that the listener named, if it isn't part of this container's history: an exchange from there would get
  /// a restart as its response.
  package var unknown: Cursor?

  package init(seq: UInt64, step: Step? = nil, unknown: Cursor? = nil) {
    self.seq = seq
    self.step = step
    self.unknown = unknown
  }
}
