// Downloads: what the game asks for, and how contents that arrive are handled.
extension DeviceEngine {
  /// Which contents are downloaded without being asked for. May change from step to step.
  package var downloadRules: DownloadRules {
    get { downloads.rules }
    set { downloads.rules = newValue }
  }

  /// Returns whether something of the slot that was asked for has still to arrive.
  package func isDownloading(_ slot: String, in storage: some DeviceStorage) throws -> Bool {
    if fetching.isDue || inFlight.exchange != nil || fetching.hasMorePages || !fetching.isComplete { return true }
    return try downloads.isComing(slot, downloading: inFlight.downloading, in: storage)
  }

  /// Ends the downloads that nothing waits for any more.
  ///
  /// - Returns: The requests to cancel.
  package mutating func cancelUnwantedDownloads(in storage: some DeviceStorage) throws -> [UInt64] {
    inFlight.cancelDownloads(except: try downloads.wantedHashes(in: storage))
  }

  /// Takes contents that came inside a response or an event.
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

  /// Reports losses to the game and the cloud.
  mutating func record(_ losses: DownloadLosses, _ effects: inout [EngineEffect]) {
    if losses.isExchangeDue || !losses.damaged.isEmpty { fetching.isDue = true }
    for hash in losses.damaged { repair.report(hash) }
    effects += losses.givenUp.map { .notify(.damaged($0)) }
  }
}
