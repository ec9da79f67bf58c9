import BenchmarkKit
public import Foundation
import Keepsake

/// One save of 256 MiB, the most that a slot takes.
public enum LargeSave {
  private static let slot = Slot<Tiles<UInt8>>("large")
  /// With the few bytes around them exactly what may be saved.
  private static let tiles = 256 << 20 - 1 << 12

  /// Random in its lower halves, so that half of it can be compressed away.
  private static func sample() -> Tiles<UInt8> {
    var random = SeededRandom(seed: 3)
    var bytes = [UInt8](repeating: 0, count: tiles)
    for index in bytes.indices { bytes[index] = UInt8(random.below(16)) }
    return Tiles(width: 16_384, tiles: bytes)
  }

  /// Makes the value, then hands out the call that saves it.
  public static func save(in folder: URL, _ body: (() throws -> Void) throws -> Void) throws {
    let value = sample()
    let game = try GameData.open("benchmark", at: folder)
    try body { _ = try game.saves.capture(value, to: slot).wait(within: .seconds(300)) }
    try game.close()
  }

  public static func load(from folder: URL, _ body: (() throws -> Void) throws -> Void) throws {
    let game = try GameData.open("benchmark", at: folder)
    try body {
      let value = try game.saves.load(slot)
      try BenchmarkError.require(value?.tiles.count == tiles, "The large save was lost")
    }
    try game.close()
  }

  public static var valueBytes: Int { tiles }
}
