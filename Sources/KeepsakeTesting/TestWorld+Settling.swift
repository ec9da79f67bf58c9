import Keepsake
import KeepsakeReplication

extension TestWorld {
  /// Rounds in which nobody gets any further, and then it is given up: a network that loses requests may need some.
  private static let idleRounds = 8
  /// Far more than any world needs: money that goes around between hundreds of devices.
  private static let maximumRounds = 10_000

  /// Returns when nobody owes anything: all that was captured and set is durable, all that was saved on devices whose game is open is in the cloud, each of
  /// them has all that the cloud has, the bank knows all operations, and what arrived is told in `GameData.changes` and shown. What a game
  /// keeps back itself (`Cloud.delivery`) has arrived as well; `deliver()` shows it.
  ///
  ///     try await world.settle()
  ///
  /// It looks at what there is and never at a clock, so it takes as long as the work does. Devices talk to the cloud at once, whatever pause they were in;
  /// what the cloud refused is sent again. Over slow networks the world's clock goes on by as much as the transfers take, and otherwise it stands still.
  ///
  /// Throws `UnsettledError` when nobody gets any further, with what is owed by whom: by a device whose network is cut or loses everything, of which the player
  /// switched the cloud off, that was never connected, or whose saves the cloud refuses. Everybody else has settled then. Devices without an open game aren't waited for. Don't save on other
  /// threads meanwhile: a world in which something always changes never settles, and after 10,000 rounds this says so.
  ///
  /// Throws `StoreError` too, if a device's disk fails. A round costs each device an exchange; most worlds need three.
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
