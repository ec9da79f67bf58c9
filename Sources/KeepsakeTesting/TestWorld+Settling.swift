import Keepsake
import KeepsakeReplication

extension TestWorld {
  /// Rounds in which nobody gets any further, and then it is given up: a network that loses requests may need some.
  private static let idleRounds = 8
  /// Far more than any world needs: money that goes around between hundreds of devices.
  private static let maximumRounds = 10_000

  /// Runs sync until nothing is left to do: all captures and preferences are durable, all saves of devices with an open
  /// game are in the cloud, each of these devices has all that the cloud has, the bank knows all operations, and what
  /// arrived is in `GameData.changes` and visible. What a game holds back (`Cloud.delivery`) has arrived too;
  /// `deliver()` shows it.
  ///
  /// ```swift
  /// try await world.settle()
  /// ```
  ///
  /// It checks the state and never a real clock, so it takes as long as the work. Devices contact the cloud at once,
  /// even during a pause; refused items are sent again. With slow networks the world's clock advances by the time of
  /// the transfers, and otherwise doesn't move. Each round costs each device an exchange; most worlds need three.
  /// Devices without an open game aren't waited for.
  ///
  /// Don't save on other threads at the same time: a world that always changes never settles, and after 10,000 rounds
  /// this fails.
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
        // Once more after all was well: what comes by itself in between is told when its device has been asked after it.
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

  /// How things stand after each device talked to the cloud once.
  private struct Round: Equatable {
    struct Device: Equatable {
      var name: String
      var debt: SyncDebt
    }
    var position: Cursor
    var devices: [Device] = []
  }

  /// And why some of them didn't get through.
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
      // By seq and mark: a device that was never connected to a cloud without anything in it isn't behind.
      let isBehind = (debt.cursor.seq, debt.cursor.mark) != (round.position.seq, round.position.mark) || debt.staged > 0
      guard debt.waitingCommits > 0 || debt.hasUnreportedMoney || isBehind else { return nil }
      return UnsettledError.Debt(
        device: device.name, unsentCommits: debt.waitingCommits, refusals: debt.refusals.map { "\($0.item): \($0.message)" },
        hasUnreportedMoney: debt.hasUnreportedMoney, isBehind: isBehind, failure: failures[device.name])
    }
  }

  /// Lets a device talk to the cloud; says why it didn't get through, nil if it did.
  private func exchange(_ game: GameData) async throws -> String? {
    try await game.commitEverything()
    do {
      try await game.cloud.sync()
      return nil
    } catch let error as GameDataError {
      // What was refused stands in the store, item by item.
      if try error.code == .refused && !game.debt().refusals.isEmpty { return nil }
      if case .refused(let reason) = game.cloud.status.phase { return reason }
      return error.message
    }
  }
}
