import BenchmarkKit
import Foundation
import GameWorlds
import Keepsake

/// Peak memory of one call, each in a process of its own, since a process's peak never falls.
enum MemoryProbe: String, CaseIterable {
  case tilesEncode = "tiles-encode"
  case tilesDecode = "tiles-decode"
  case dungeonEncode = "dungeon-encode"
  case dungeonDecode = "dungeon-decode"
  case jsonEncode = "json-encode"
  case jsonDecode = "json-decode"

  static let group = "memory"
  private static let tileCount = 256 << 20

  private var title: String {
    switch self {
    case .tilesEncode: "256 MiB of tiles, encode"
    case .tilesDecode: "256 MiB of tiles, decode"
    case .dungeonEncode: "dungeon, encode"
    case .dungeonDecode: "dungeon, decode"
    case .jsonEncode: "dungeon, encode as JSON"
    case .jsonDecode: "dungeon, decode from JSON"
    }
  }

  static func named(_ name: String) throws -> MemoryProbe {
    guard let probe = MemoryProbe(rawValue: name) else { throw UsageError(message: "There is no memory probe \(name)") }
    return probe
  }

  /// Starts this program once for each probe. Nothing where the system doesn't tell a peak that can be reset.
  static func measureAll() throws -> [MemoryFigure] {
    #if os(Linux)
    Progress.report("memory: \(allCases.count) processes")
    return try allCases.map { probe in
      try JSONDecoder().decode(MemoryFigure.self, from: try Subprocess.run(["--probe", probe.rawValue]))
    }
    #else
    return []
    #endif
  }

  /// In the process that was started: does the one thing and prints what it took.
  func run() throws {
    let figure: MemoryFigure
    switch self {
    case .tilesEncode:
      let tiles = Self.tiles()
      figure = try measure(value: Self.tileCount) {
        try Archive.encode(tiles, limits: Self.limits)
      } bytes: {
        $0.count
      }
    case .tilesDecode:
      let archive = try Archive.encode(Self.tiles(), limits: Self.limits)
      figure = try measure(value: Self.tileCount) {
        try Archive.decode(Tiles<UInt8>.self, from: archive, limits: Self.limits)
      } bytes: { _ in
        archive.count
      }
    case .dungeonEncode: figure = try measure("Keepsake", "encode")
    case .dungeonDecode: figure = try measure("Keepsake", "decode")
    case .jsonEncode: figure = try measure("JSON", "encode")
    case .jsonDecode: figure = try measure("JSON", "decode")
    }
    FileHandle.standardOutput.write(try JSONEncoder().encode(figure))
  }

  private static func tiles() -> Tiles<UInt8> { Tiles(width: 16_384, tiles: [UInt8](repeating: 7, count: tileCount)) }

  /// The archive of the tiles is a little larger than the usual limit.
  private static var limits: ArchiveLimits {
    var limits = ArchiveLimits()
    limits.archiveBytes = 2 * tileCount
    return limits
  }

  /// A task of the dungeon.
  private func measure(_ encoder: String, _ action: String) throws -> MemoryFigure {
    var remarks: [String] = []
    let tasks = try DungeonGroup.tasks(protobufLibrary: nil, remarks: &remarks)
    guard let task = tasks.first(where: { $0.encoder == encoder && $0.action == action }), let bytes = task.bytes else {
      throw BenchmarkError(message: "There is no \(action) by \(encoder)")
    }
    return try measure(value: nil) {
      try task.run()
    } bytes: { _ in
      bytes.count
    }
  }

  private func measure<Output>(
    value: Int?, _ body: () throws -> Output, bytes: (Output) -> Int
  ) throws -> MemoryFigure {
    let (output, extra) = try PeakMemory.measure(body)
    return MemoryFigure(name: title, valueBytes: value, archiveBytes: bytes(output), extraBytes: extra)
  }
}
