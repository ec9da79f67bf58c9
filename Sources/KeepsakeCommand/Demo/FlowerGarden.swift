#if Cloud
import Foundation
import Keepsake

/// A pot of the flower garden: what is saved, and how each field merges when two devices changed it.
@Archivable
struct Pot {
  @Merge(.union) var flowers: Set<String> = []
  @Merge(.max) var height = 0
  @Merge(.counter) var waterings = Counter()
}

/// What the phone writes without pause while it is killed.
@Archivable
struct Journal {
  @Merge(.max) var entry = 0
}

extension ProgressKey<Int> {
  static var level: Self { .max("level", default: 1) }
}

extension ProgressKey<Set<String>> {
  static var seeds: Self { .union("seeds") }
}

extension Currency {
  static var gems: Self { "gems" }
}

extension Slot<Journal> {
  static var journal: Self { "journal" }
}

/// One player's garden on one device, through the calls that any game would use.
final class FlowerGarden {
  let game: GameData

  init(store: URL) throws {
    game = try GameData.open("com.example.flowergarden", at: store)
  }

  private func slot(of pot: String) -> Slot<Pot> { Slot("pot/\(pot)") }

  func change(pot name: String, _ change: (inout Pot) -> Void) async throws {
    var pot = try game.saves.load(slot(of: name)) ?? Pot()
    change(&pot)
    try await game.saves.save(pot, to: slot(of: name))
  }

  func view() throws -> GardenView {
    var pots: [String: GardenView.PotView] = [:]
    for entry in try game.saves.list() where entry.name.hasPrefix("pot/") {
      let name = String(entry.name.dropFirst("pot/".count))
      guard let pot = try game.saves.load(slot(of: name)) else { continue }
      pots[name] = GardenView.PotView(
        flowers: pot.flowers.sorted(), height: pot.height, waterings: pot.waterings.value,
        heads: try game.saves.conflict(slot(of: name))?.sides.count ?? 1,
        versions: try game.saves.history(of: slot(of: name)).count)
    }
    let balance = game.wallet[.gems]
    return GardenView(
      level: game.progress[.level], seeds: game.progress[.seeds].sorted(), gems: Int64(balance.total),
      spendableGems: Int64(balance.spendable), pots: pots, journal: try game.saves.load(.journal)?.entry ?? 0)
  }

  func sees(_ wish: DemoWish) throws -> Bool {
    let view = try view()
    switch wish {
    case .flower(let flower, let pot): return view.pots[pot]?.flowers.contains(flower) == true
    case .level(let level): return view.level >= level
    case .gems(let total): return view.gems == total
    case .spendableGems(let least): return view.spendableGems >= least
    case .waterings(let count, let pot): return view.pots[pot]?.waterings == count
    case .everything(let expected): return view.shared == expected
    }
  }
}
#endif
