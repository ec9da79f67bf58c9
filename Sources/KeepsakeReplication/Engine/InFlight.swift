/// A content in flight.
struct Transfer: Sendable {
  var request: UInt64
  var isUpload: Bool
  var hash: ContentHash
  /// What it takes on the wire: known of an upload, guessed of a download.
  var bytes: Int
  /// Of an upload: what it is a delta of, and how many bases the cloud has to decode for it.
  var base: ContentHash?
  var depth = 0
  /// The version counts as offered only since this began: a later save of the slot gets a group of its own, and this
  /// one's doesn't change while its contents are in flight.
  var marksOffered = false
  /// Whose content it is.
  var status: EngineTransfer
}

/// The requests in flight: at most one exchange, and beside it some contents, up and down.
struct InFlight: Sendable {
  /// The exchange, as it was sent.
  private(set) var exchange: (request: UInt64, sent: SentExchange)?
  /// In the order in which they began.
  private(set) var transfers: [Transfer] = []
  private var lastRequest: UInt64?

  var isIdle: Bool { exchange == nil && transfers.isEmpty }
  var uploading: Set<ContentHash> { Set(transfers.filter(\.isUpload).map(\.hash)) }
  var downloading: Set<ContentHash> { Set(transfers.filter { !$0.isUpload }.map(\.hash)) }
  var isDownloading: Bool { transfers.contains { !$0.isUpload } }

  /// There are fewer uploads than downloads, so an upload is the next to begin, where there is one.
  var isUploadNext: Bool { transfers.count(where: \.isUpload) < transfers.count { !$0.isUpload } }

  /// Whether a content may begin beside those that are in flight.
  ///
  /// - Parameters:
  ///   - bytes: What it takes on the wire.
  ///   - options: The most bytes in flight, and what is so small that they don't matter.
  /// - Returns: True also for the only one, however large.
  func hasRoom(for bytes: Int, _ options: DeviceEngine.Options) -> Bool {
    let total = transfers.reduce(0) { $0 + $1.bytes }
    return transfers.isEmpty || bytes <= options.smallTransferBytes || total + bytes <= options.maximumTransferBytes
  }

  /// The number of the next request. The first may be any, so that answers to an earlier engine of the same store
  /// answer nothing here.
  mutating func nextRequest(using random: inout some RandomNumberGenerator) -> UInt64 {
    let request = (lastRequest ?? random.next()) &+ 1
    lastRequest = request
    return request
  }

  /// Begins the exchange.
  ///
  /// - Returns: Its number.
  mutating func begin(_ sent: SentExchange, using random: inout some RandomNumberGenerator) -> UInt64 {
    let request = nextRequest(using: &random)
    exchange = (request, sent)
    return request
  }

  mutating func begin(_ transfer: Transfer) { transfers.append(transfer) }

  /// Ends the exchange of this number.
  ///
  /// - Parameter orAny: Whether any exchange will do, which is a fault.
  /// - Returns: What was sent; nil if no such exchange is in flight.
  mutating func finishExchange(_ request: UInt64, orAny: Bool = false) -> SentExchange? {
    guard let finished = exchange, finished.request == request || orAny else { return nil }
    exchange = nil
    return finished.sent
  }

  /// Ends the transfer of this number.
  ///
  /// - Parameter isUpload: Which way it has to go; nil for either.
  /// - Returns: The transfer; nil if none of this number is in flight, or it goes the other way.
  mutating func finishTransfer(_ request: UInt64, isUpload: Bool? = nil) -> Transfer? {
    let index = transfers.firstIndex { $0.request == request && isUpload ?? $0.isUpload == $0.isUpload }
    return index.map { transfers.remove(at: $0) }
  }

  /// Ends the downloads of all other contents.
  ///
  /// - Returns: Their numbers.
  mutating func cancelDownloads(except wanted: Set<ContentHash>) -> [UInt64] {
    let cancelled = transfers.filter { !$0.isUpload && !wanted.contains($0.hash) }.map(\.request)
    transfers.removeAll { cancelled.contains($0.request) }
    return cancelled
  }

  /// An exchange offers these versions: that no transfer of theirs gets there doesn't take that back.
  mutating func exchangeOffers(_ versions: [VersionID]) {
    for index in transfers.indices where versions.contains(transfers[index].status.version) { transfers[index].marksOffered = false }
  }
}
