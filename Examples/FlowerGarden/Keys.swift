package import Keepsake

/// A saved value that one device writes continuously while its process is killed.
@Archivable
package struct Journal {
  @Merge(.max) package var entry = 0

  package init() {}
}

extension Slot<Pot> {
  /// Each pot is a slot of its own, so that two players who water different pots never conflict.
  package static func pot(_ name: String) -> Self { Slot("pot/\(name)") }
}

extension Slot<Journal> {
  package static let journal = Slot("journal")
}

extension ProgressKey<Int> {
  package static let level = ProgressKey("level", default: 1, rule: .max)
}

extension ProgressKey<Set<String>> {
  package static let seeds = ProgressKey("seeds", rule: .union)
  /// In the container that the studio's games share.
  package static let heroes = ProgressKey("heroes", rule: .union)
}

extension Currency {
  package static let gems = Currency("gems")
  /// In the container that the studio's games share.
  package static let coins = Currency("coins")
}
