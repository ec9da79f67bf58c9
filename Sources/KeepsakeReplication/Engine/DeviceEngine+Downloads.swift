// Downloads: what the game asks for, and what becomes of contents that arrive.
extension DeviceEngine {
  /// Which contents come by themselves. May change from step to step.
  package var downloadRules: DownloadRules {
    get { downloads.rules }
    set { downloads.rules = newValue }
  }

  /// Whether something of the slot that was asked for is still to come.
  package func isDownloading(_ slot: String, in storage: some DeviceStorage) throws -> Bool {
    if fetching.isDue || inFlight.exchange != nil || fetching.hasMorePages || !fetching.isComplete { return true }
    return try downloads.isComing(slot, downloading: inFlight.downloading, in: storage)
  }

  /// Ends the downloads that nobody waits for any more.
  ///
  /// - Returns: The requests that are to be ended.
  package mutating func cancelUnwantedDownloads(in storage: some DeviceStorage) throws -> [UInt64] {
    inFlight.cancelDownloads(except: try downloads.wantedHashes(in: storage))
  }

  /// Takes contents that came inside an answer or an event.
  mutating func take(
    _ contents: [EncodedContent], _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    var losses = DownloadLosses()
    for content in contents { try downloads.take(content, &losses, in: &storage) }
    record(losses, &effects)
  }

  mutating func takeHeld(_ effects: inout [EngineEffect], in storage: inout some DeviceStorage) throws {
    var losses = DownloadLosses()
    try downloads.takeHeld(&losses, in: &storage)
    record(losses, &effects)
  }

  /// Reports to the game and the cloud what was lost.
  mutating func record(_ losses: DownloadLosses, _ effects: inout [EngineEffect]) {
    if losses.isExchangeDue || !losses.damaged.isEmpty { fetching.isDue = true }
    for hash in losses.damaged { repair.report(hash) }
    effects += losses.givenUp.map { .notify(.damaged($0)) }
  }
}
