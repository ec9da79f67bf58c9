public import Keepsake

/// A map of tiles: little but numbers.
@Archivable
public struct Tiles<Tile: Archivable & Equatable & Sendable>: Equatable, Sendable {
  public var width: Int
  public var tiles: [Tile]

  public init(width: Int, tiles: [Tile]) {
    self.width = width
    self.tiles = tiles
  }

  /// This many tiles, rows of a thousand, the same every time.
  public static func sample(_ count: Int, _ tile: (Int) -> Tile) -> Tiles {
    var random = SeededRandom(seed: 640)
    return Tiles(width: 1_000, tiles: (0..<count).map { _ in tile(random.below(1 << 16)) })
  }
}
