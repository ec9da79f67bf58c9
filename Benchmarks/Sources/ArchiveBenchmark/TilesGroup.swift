import BenchmarkKit
import CPeers
import Foundation
import GameWorlds
import Keepsake

/// A million tiles of several kinds, against copying the same memory: into fresh memory, as the goals say, and into
/// memory that is used again and again and never leaves the processor's caches.
struct TilesGroup {
  static let name = "tiles"
  static let count = 1_000_000
  static let warm = "memory used again"
  static let kinds = ["[UInt8]", "[UInt16]", "[Int32]", "[Int]", "[Float]"]

  /// In a process of its own, since this tells the C library for good how to take memory.
  static func runApart(rounds: Int) throws -> [Measurement] {
    let output = try Subprocess.run(["--filter", name, "--rounds", "\(rounds)", "--json"])
    return try JSONDecoder().decode(Figures.self, from: output).measurements
  }

  /// Fresh memory first: once a process has freed large blocks that it may use again, no block is sure to be fresh.
  static func run(_ runner: inout Runner) throws {
    for fresh in [true, false] {
      take_fresh_memory(fresh)
      let suffix = fresh ? "" : ", \(warm)"
      try run(&runner, kinds[0] + suffix, Tiles.sample(count) { UInt8(truncatingIfNeeded: $0) })
      try run(&runner, kinds[1] + suffix, Tiles.sample(count) { UInt16(truncatingIfNeeded: $0) })
      try run(&runner, kinds[2] + suffix, Tiles.sample(count) { Int32(truncatingIfNeeded: $0) })
      try run(&runner, kinds[3] + suffix, Tiles.sample(count) { $0 })
      try run(&runner, kinds[4] + suffix, Tiles.sample(count) { Float($0) / 16 })
    }
  }

  private static func run<Tile: Archivable & Equatable & Sendable>(
    _ runner: inout Runner, _ kind: String, _ tiles: Tiles<Tile>
  ) throws {
    let archive = try Archive.encode(tiles)
    try BenchmarkError.require(try Archive.decode(Tiles<Tile>.self, from: archive) == tiles, "The archive lost tiles")
    let memory = tiles.tiles.withUnsafeBytes { Memory.copy($0) }
    let tasks = [
      TimedTask("memcpy", "encode", bytes: memory) { tiles.tiles.withUnsafeBytes { Memory.copy($0) } },
      TimedTask("Keepsake", "encode", bytes: archive) { try Archive.encode(tiles) },
      TimedTask("memcpy", "decode", bytes: memory) { memory.withUnsafeBytes { array(Tile.self, $0) } },
      TimedTask("Keepsake", "decode", bytes: archive) { try Archive.decode(Tiles<Tile>.self, from: archive) },
    ]
    try runner.measure("\(name) \(kind)", tasks)
  }

  /// A new array of the same bytes. The tiles are plain numbers.
  private static func array<Tile>(_: Tile.Type, _ bytes: UnsafeRawBufferPointer) -> [Tile] {
    let count = bytes.count / MemoryLayout<Tile>.stride
    return [Tile](unsafeUninitializedCapacity: count) { buffer, initialized in
      UnsafeMutableRawBufferPointer(buffer).copyMemory(from: bytes)
      initialized = count
    }
  }
}
