/// All that a player can see on one device, read back through the game-facing calls.
package struct GardenView: Codable, Equatable {
  package struct PotView: Codable, Equatable {
    package var flowers: [String]
    package var height: Int
    package var waterings: Int
    package var heads: Int
    package var versions: Int
  }
  package var level: Int
  package var seeds: [String]
  package var gems: Int64
  package var spendableGems: Int64
  package var pots: [String: PotView]
  package var journal: Int

  /// What must be the same on every device: all but what is this device's own (rights, versions kept).
  package var shared: GardenView {
    var view = self
    view.spendableGems = 0
    view.pots = pots.mapValues { pot in
      var pot = pot
      pot.versions = 0
      pot.heads = 0
      return pot
    }
    return view
  }
}
