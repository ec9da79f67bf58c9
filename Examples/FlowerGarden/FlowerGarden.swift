package import Foundation
package import Keepsake

/// One player's garden on one device: the few calls that the game's screens need.
///
///     let garden = FlowerGarden(game)
///     try await garden.plant("tulip", in: "windowsill")
///     try garden.buy("a fountain", for: 40)
///     let view = try garden.view()
package struct FlowerGarden: Sendable {
  package static let id = "com.example.flowergarden"
  /// The gems that each player gets once, across all devices.
  package static let starterGems = 100

  package let game: GameData

  /// Creates a garden from open game data.
  package init(_ game: GameData) { self.game = game }

  /// Opens the data in a folder, as a game does when it starts.
  package init(store: URL) throws { game = try GameData.open(Self.id, at: store) }

  // MARK: Pots

  /// Loads or creates a pot, changes it and saves it.
  package func change(pot name: String, _ change: (inout Pot) -> Void) async throws {
    var pot = try game.saves.load(.pot(name)) ?? Pot(weather: .random(in: .min ... .max))
    change(&pot)
    try await game.saves.save(pot, to: .pot(name))
  }

  /// Plants a flower with an id of its own, different from those that other devices plant.
  package func plant(_ kind: String, in pot: String) async throws {
    try await change(pot: pot) { $0.plant(kind, id: UUID().uuidString) }
  }

  package func water(_ pot: String, times: Int = 1) async throws { try await change(pot: pot) { $0.water(times) } }

  // MARK: The player

  package func reach(level: Int) throws { try game.progress.record(level, for: .level) }

  package func unlock(seed: String) throws { try game.progress.insert(seed, into: .seeds) }

  /// Grants the gift once per player, however many devices request it.
  package func claimStarterGift() throws {
    try game.wallet.claim(Self.starterGems, .gems, key: "starter gift", for: "starter gift")
  }

  package func earn(_ gems: Int, for quest: String) throws { try game.wallet.earn(gems, .gems, for: quest) }

  /// Throws `GameDataError.Code.insufficient` if fewer gems can be spent on this device at the moment.
  package func buy(_ thing: String, for gems: Int) throws {
    try game.wallet.spend(gems, .gems, for: thing, goods: [Goods(thing)])
  }

  /// Buys with all gems of the player: those that this device can't spend by itself come from the bank and from the
  /// other devices.
  package func buy(_ thing: String, for gems: Int, askingBankFor limit: Duration) async throws {
    try await game.wallet.spend(gems, .gems, for: thing, goods: [Goods(thing)], askingBankFor: limit)
  }

  /// Takes back what was bought and doesn't count. Returns the things.
  package func takeBack() throws -> [String] {
    let notices = try game.wallet.notices()
    if let last = notices.last { try game.wallet.confirm(through: last) }
    // What the game's servers did is in `goods()`.
    let declined: Set<WalletNotice.Verdict> = [.declined, .idReused, .notAllowed]
    return notices.filter { declined.contains($0.verdict) }.flatMap(\.goods).map(\.name)
  }

  // MARK: What is seen

  package func view() throws -> GardenView {
    var pots: [String: GardenView.PotView] = [:]
    for entry in try game.saves.list() where entry.name.hasPrefix("pot/") {
      let name = String(entry.name.dropFirst("pot/".count))
      guard let pot = try game.saves.load(.pot(name)) else { continue }
      pots[name] = GardenView.PotView(
        flowers: pot.flowers.map(\.kind).sorted(), height: pot.height, waterings: pot.waterings.value,
        heads: try game.saves.conflict(.pot(name))?.sides.count ?? 1,
        versions: try game.saves.history(of: .pot(name)).count)
    }
    let balance = game.wallet[.gems]
    return GardenView(
      level: game.progress[.level], seeds: game.progress[.seeds].sorted(), gems: Int64(balance.total),
      spendableGems: Int64(balance.spendable),
      goods: Dictionary(uniqueKeysWithValues: try game.wallet.goods().map { ($0.key.name, $0.value) }), pots: pots,
      journal: try game.saves.load(.journal)?.entry ?? 0)
  }
}
