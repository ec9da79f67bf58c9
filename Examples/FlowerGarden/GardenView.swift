/// Everything that a player can see on one device, read through the API for games.
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
  /// How many of each thing the player has bought.
  package var goods: [String: Int]
  package var pots: [String: PotView]
  package var journal: Int

  /// The part that must be the same on every device: everything except what belongs to this device (rights, kept
  /// versions).
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
