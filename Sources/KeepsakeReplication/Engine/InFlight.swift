/// A content being uploaded or downloaded.
struct Transfer: Sendable {
  var request: UInt64
  var isUpload: Bool
  var hash: ContentHash
  /// Bytes on the wire: known for an upload, estimated for a download.
  var bytes: Int
  /// For an upload: the base that it is a delta of, and how many bases the cloud has to decode for it.
  var base: ContentHash?
  var depth = 0
  /// The version counts as offered only since this transfer began: a later save of the slot gets a group of its own,
  /// and this version's group doesn't change while its contents are in flight.
  var marksOffered = false
  /// The version and slot that the content belongs to.
  var status: EngineTransfer
}

/// The requests in flight: at most one exchange, and beside it some uploads and downloads of contents.
struct InFlight: Sendable {
  /// The exchange, as it was sent.
  private(set) var exchange: (request: UInt64, sent: SentExchange)?
  /// In the order in which they began.
  private(set) var transfers: [Transfer] = []
  private var lastRequest: UInt64?

  var isIdle: Bool { exchange == nil && transfers.isEmpty }
  /// The numbers of all requests in flight.
  var requests: Set<UInt64> { Set(transfers.map(\.request)).union(exchange.map { [$0.request] } ?? []) }
  var uploading: Set<ContentHash> { Set(transfers.filter(\.isUpload).map(\.hash)) }
  var downloading: Set<ContentHash> { Set(transfers.filter { !$0.isUpload }.map(\.hash)) }
  var isDownloading: Bool { transfers.contains { !$0.isUpload } }

  /// There are fewer uploads than downloads, so an upload begins next, if there is one.
  var isUploadNext: Bool { transfers.count(where: \.isUpload) < transfers.count { !$0.isUpload } }

  /// Returns whether a content may begin beside those in flight.
  ///
  /// - Parameters:
  ///   - bytes: Its bytes on the wire.
  ///   - options: The most bytes in flight, and the size up to which a content may always begin.
  /// - Returns: Always true if nothing else is in flight, however large the content is.
  func hasRoom(for bytes: Int, _ options: DeviceEngine.Options) -> Bool {
    let total = transfers.reduce(0) { $0 + $1.bytes }
    return transfers.isEmpty || bytes <= options.smallTransferBytes || total + bytes <= options.maximumTransferBytes
  }

  /// Returns the number of the next request. The first number is random, so that responses to an earlier engine of the
  /// same store match no request here.
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
  /// - Parameter orAny: Whether any exchange matches, which is a fault.
  /// - Returns: What was sent; nil if no such exchange is in flight.
  mutating func finishExchange(_ request: UInt64, orAny: Bool = false) -> SentExchange? {
    guard let finished = exchange, finished.request == request || orAny else { return nil }
    exchange = nil
    return finished.sent
  }

  /// Ends the transfer of this number.
  ///
  /// - Parameter isUpload: The direction that it must have; nil for either.
  /// - Returns: The transfer; nil if none of this number is in flight, or it goes the other way.
  mutating func finishTransfer(_ request: UInt64, isUpload: Bool? = nil) -> Transfer? {
    let index = transfers.firstIndex { $0.request == request && isUpload ?? $0.isUpload == $0.isUpload }
    return index.map { transfers.remove(at: $0) }
  }

  /// Ends all downloads except those of wanted contents.
  ///
  /// - Returns: Their request numbers.
  mutating func cancelDownloads(except wanted: Set<ContentHash>) -> [UInt64] {
    let cancelled = transfers.filter { !$0.isUpload && !wanted.contains($0.hash) }.map(\.request)
    transfers.removeAll { cancelled.contains($0.request) }
    return cancelled
  }

  /// Handles an exchange that offers these versions: they stay offered even if a transfer of theirs fails.
  mutating func exchangeOffers(_ versions: [VersionID]) {
    for index in transfers.indices where versions.contains(transfers[index].status.version) {
      transfers[index].marksOffered = false
    }
  }
}
