import Keepsake
import KeepsakeReplication

extension TestWorld {
  /// Rounds without progress after which it gives up: a network that loses requests may need some.
  private static let idleRounds = 8
  /// Far more than any world needs, even with money passed on between hundreds of devices.
  private static let maximumRounds = 10_000

  /// Runs sync until nothing is left to do: all captures and preferences are durable, all saves of devices with an open
  /// game are in the cloud, each of these devices has everything the cloud has, the bank knows all operations, and
  /// received changes are in `GameData.changes` and visible. Changes that a game holds back (`Cloud.delivery`) have
  /// been received too; `deliver()` shows them.
  ///
  /// ```swift
  /// try await world.settle()
  /// ```
  ///
  /// It checks the state and never a real clock, so it takes as long as the work. Devices contact the cloud
  /// immediately, even during a pause; refused items are sent again. With slow networks, the world's clock advances by
  /// the time of the transfers; otherwise it doesn't move. Each round costs each device an exchange; most worlds need
  /// three. Doesn't wait for devices without an open game.
  ///
  /// Don't save on other threads at the same time: a world that keeps changing never settles, and after 10,000 rounds
  /// this call fails.
  ///
  /// - Throws: `UnsettledError` if there is no more progress, with what is left: a device may be cut off or lose every
  ///   request, have sync switched off, never have been connected, or have saves that the cloud refuses. Everything
  ///   else has settled then. `StoreError` if a device's disk fails.
  public func settle() async throws {
    clock.hurry()
    defer { clock.stopHurrying() }
    var last: Round?
    var idle = 0
    for _ in 0..<Self.maximumRounds {
      let (round, failures) = try await playRound()
      if round == last {
        // Two equal rounds are needed: what a device receives by itself between them is emitted by the end of its next
        // sync.
        let debts = debts(in: round, failures)
        if debts.isEmpty { return }
        idle += 1
        if idle == Self.idleRounds { throw UnsettledError(debts: debts) }
      } else {
        idle = 0
      }
      last = round
    }
    throw UnsettledError(debts: last.map { debts(in: $0, [:]) } ?? [])
  }

  /// The state after each device has contacted the cloud once.
  private struct Round: Equatable {
    struct Device: Equatable {
      var name: String
      var debt: SyncDebt
    }
    var position: Cursor
    var devices: [Device] = []
  }

  /// Plays one round. Also returns why some devices failed to sync.
  private func playRound() async throws -> (Round, failures: [String: String]) {
    let running = devices.compactMap { device in device.game.map { (device.name, $0) } }
    var failures: [String: String] = [:]
    for (name, game) in running { failures[name] = try await exchange(game) }
    var round = Round(position: cloud.memory.container.position())
    for (name, game) in running { round.devices.append(Round.Device(name: name, debt: try game.debt())) }
    return (round, failures)
  }

  private func debts(in round: Round, _ failures: [String: String]) -> [UnsettledError.Debt] {
    round.devices.compactMap { device in
      let debt = device.debt
      // Compared by seq and mark, so that a device that was never connected isn't behind an empty cloud.
      let isBehind = (debt.cursor.seq, debt.cursor.mark) != (round.position.seq, round.position.mark) || debt.staged > 0
      guard debt.waitingCommits > 0 || debt.hasUnreportedMoney || isBehind else { return nil }
      return UnsettledError.Debt(
        device: device.name, unsentCommits: debt.waitingCommits,
        refusals: debt.refusals.map { "\($0.item): \($0.message)" },
        hasUnreportedMoney: debt.hasUnreportedMoney, isBehind: isBehind, failure: failures[device.name])
    }
  }

  /// Syncs a device with the cloud. Returns why that failed; nil if it succeeded.
  private func exchange(_ game: GameData) async throws -> String? {
    try await game.commitEverything()
    do {
      try await game.cloud.sync()
      return nil
    } catch let error as GameDataError {
      // The store has what was refused, item by item.
      if try error.code == .refused && !game.debt().refusals.isEmpty { return nil }
      if case .refused(let reason) = game.cloud.status.phase { return reason }
      return error.message
    }
  }
}
