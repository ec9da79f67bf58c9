#if Cloud
import HTTPTypes
import KeepsakeReplication
import Synchronization

/// What one request takes of the work that its player and its address may have, in units of
/// ``KeepsakeReplication/ExchangeRequest/work``.
///
/// Nobody knows at once what a request costs: its bytes are known first, then the values in it, then what it asks for.
/// Each is paid before it is done, and the largest of them is what the request costs in all. With much work the request
/// begins its turn, in which no other such request is handled.
final class RequestWork: Sendable {
  private struct State {
    var units = 0
    var isHeavy = false
  }
  private let gate: ServerGate
  private let container: ContainerID
  private let address: PeerAddress
  private let state = Mutex(State())

  /// - Parameter address: The client's.
  init(of container: ContainerID, from address: PeerAddress, _ gate: ServerGate) {
    (self.container, self.address, self.gate) = (container, address, gate)
  }

  /// Takes what is missing to `units`. Throws an `APIError` if the request has to wait for its share or for its turn;
  /// nothing is taken then.
  func reach(_ units: Int) throws {
    try state.withLock { state in
      guard units > state.units else { return }
      if units > ServerLimits.lightWork, !state.isHeavy {
        if let seconds = gate.heavyTurns.begin() {
          throw gate.refusals.count(
            .heavyQueue, from: address,
            as: APIError(
              .serviceUnavailable, .busy, "The server is busy with other large requests; try again in \(seconds) s.",
              retryAfterSeconds: seconds))
        }
        state.isHeavy = true
      }
      try gate.rates.work(units - state.units, paid: state.units, by: container, from: address)
      state.units = units
    }
  }

  /// Ends the turn, if there was one. Call it when the request has been handled or refused.
  func end() {
    let wasHeavy = state.withLock { state in
      defer { state.isHeavy = false }
      return state.isHeavy
    }
    if wasHeavy { gate.heavyTurns.end() }
  }
}

extension CloudRoutes {
  /// Runs `body` when an exchange has its share of the writer's time and of the memory for its response. Throws an
  /// `APIError` if that has to wait, and before anything is read or written.
  ///
  /// - Parameter address: The client's.
  func admitted<Result>(
    _ message: ExchangeRequest, of identity: DeviceIdentity, from address: PeerAddress, as work: RequestWork,
    _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      try CloudAcceptance.check(message)
    } catch ExchangeError.exceeds(let what, let count, let limit) {
      throw gate.refusals.count(
        .tooMuchWork, from: address, as: APIError.exceeds(what, count: count, limit: limit))
    }
    try work.reach(message.work)
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
