#if Cloud
import HTTPTypes
import KeepsakeReplication

extension CloudRoutes {
  /// Runs `body` when an exchange has its share of the writer's time and of the memory for its response. Throws an
  /// `APIError` if that has to wait, and before anything is read or written.
  ///
  /// - Parameter address: The client's.
  func admitted<Result>(
    _ message: ExchangeRequest, of identity: DeviceIdentity, from address: PeerAddress,
    _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      try CloudAcceptance.check(message)
    } catch ExchangeError.exceeds(let what, let count, let limit) {
      throw gate.refusals.count(
        .tooMuchWork, from: address, as: APIError.exceeds(what, count: count, limit: limit))
    }
    let work = message.work
    try gate.rates.work(work, by: identity.container, from: address)
    var isHeavy = false
    if work > ServerLimits.lightWork {
      if let seconds = gate.heavyTurns.begin() {
        throw gate.refusals.count(
          .heavyQueue, from: address,
          as: APIError(
            .serviceUnavailable, .busy, "The server is busy with other large requests; try again in \(seconds) s.",
            retryAfterSeconds: seconds))
      }
      isHeavy = true
    }
    defer { if isHeavy { gate.heavyTurns.end() } }
    let newest = try await storage.newestSeq(of: identity.container)
    let behind = newest > message.cursor.seq ? newest - message.cursor.seq : 0
    let expected = CloudAcceptance.largestResponse(to: message, behind: behind)
    guard let share = await gate.memory.building.wait(for: expected * ServerLimits.buildingFactor) else {
      throw gate.refusals.count(.memory, from: address, as: APIError.overBudget("responses"))
    }
    defer { share.end() }
    return try await body()
  }
}
#endif
