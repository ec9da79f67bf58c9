import CPeers
import Foundation
import GameWorlds
import Keepsake
import Peers

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

  /// Starts this program once for each probe. Nothing where the system doesn't tell a peak that can be reset.
  static func measureAll() throws -> [MemoryFigure] {
    #if os(Linux)
    Progress.tell("memory: \(allCases.count) processes")
    return try allCases.map { probe in
      try JSONDecoder().decode(MemoryFigure.self, from: try Subprocess.run(["--memory-probe", probe.rawValue]))
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
    case .dungeonEncode:
      let dungeon = Dungeon.sample(heroes: DungeonGroup.heroes)
      figure = try measure(value: nil) {
        try Archive.encode(dungeon)
      } bytes: {
        $0.count
      }
    case .dungeonDecode:
      let archive = try Archive.encode(Dungeon.sample(heroes: DungeonGroup.heroes))
      figure = try measure(value: nil) {
        try Archive.decode(Dungeon.self, from: archive)
      } bytes: { _ in
        archive.count
      }
    case .jsonEncode:
      let mirror = CodableDungeon(Dungeon.sample(heroes: DungeonGroup.heroes))
      figure = try measure(value: nil) {
        try JSONEncoder().encode(mirror)
      } bytes: {
        $0.count
      }
    case .jsonDecode:
      let json = try JSONEncoder().encode(CodableDungeon(Dungeon.sample(heroes: DungeonGroup.heroes)))
      figure = try measure(value: nil) {
        try JSONDecoder().decode(CodableDungeon.self, from: json)
      } bytes: { _ in
        json.count
      }
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

  private func measure<Output>(
    value: Int?, _ body: () throws -> Output, bytes: (Output) -> Int
  ) throws -> MemoryFigure {
    // What building the value freed would count as there already, and hide what the call takes.
    return_unused_memory()
    // Sets the peak back to what is held now.
    try Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs"))
    let before = try status("VmRSS")
    let output = try body()
    let after = try status("VmHWM")
    return MemoryFigure(name: title, valueBytes: value, archiveBytes: bytes(output), extraBytes: after - before)
  }

  /// A line of the kernel's own account of this process, in bytes.
  private func status(_ key: String) throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(key + ":") }),
      let kibibytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) })
    else { throw BenchmarkError(message: "The system doesn't tell \(key)") }
    return kibibytes << 10
  }
}
