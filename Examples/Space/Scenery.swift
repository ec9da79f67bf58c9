import Foundation
import Keepsake

/// The assets that ship with the game: the ship's shape, its flame, and the stars.
struct Scenery {
  struct Star {
    var position: SIMD2<Double>
    var brightness: Int
  }

  let ship: [[SIMD2<Double>]]
  let flame: [[SIMD2<Double>]]
  let stars: [Star]

  /// Checks every asset before play, so that a missing or damaged one is reported immediately, with what to do.
  init(_ assets: AssetLibrary) throws {
    let report = try assets.check(.full)
    guard report.isSound else {
      throw Problem(
        "The game's files in \(assets.url.path) are missing or damaged. Install the game again, or name another folder "
          + "with --assets FOLDER.\n\(report)")
    }
    try assets.load(["ship.txt", "flame.txt", "stars.txt"]).wait(within: .seconds(10))
    ship = try Self.lines(assets, "ship.txt")
    flame = try Self.lines(assets, "flame.txt")
    stars = try Self.numbers(assets, "stars.txt", each: 3).compactMap { numbers in
      numbers.isEmpty ? nil : Star(position: SIMD2(numbers[0], numbers[1]), brightness: min(max(Int(numbers[2]), 1), 3))
    }
  }

  private static func lines(_ assets: AssetLibrary, _ path: String) throws -> [[SIMD2<Double>]] {
    try numbers(assets, path, each: 2).split(separator: []).map { line in line.map { SIMD2($0[0], $0[1]) } }
  }

  /// Returns the numbers on each line: `count` of them, or none.
  private static func numbers(_ assets: AssetLibrary, _ path: String, each count: Int) throws -> [[Double]] {
    let lines = String(decoding: try assets.data(for: path), as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false)
    return try lines.enumerated().compactMap { number, line in
      if line.hasPrefix("#") { return nil }
      let numbers = line.split(separator: " ").compactMap { Double($0) }.filter { abs($0) < 10_000 }
      guard numbers.count == count || line.isEmpty else {
        throw Problem("\(path), line \(number + 1): expected \(count) numbers")
      }
      return numbers
    }
  }

  /// Draws a frame: stars, ship and a line of text, in the size of the terminal.
  func draw(_ world: World, _ note: String, columns: Int, rows: Int) -> Screen {
    var screen = Screen(columns: columns, rows: rows)
    let scale = SIMD2(Double(screen.width), Double(screen.height)) / World.size
    for star in stars { screen.dot(star.position * scale, [240, 247, 231][star.brightness - 1]) }
    // The ship keeps its proportions, whatever the terminal's are.
    let size = max(scale.min() * 1.6, 0.5)
    let (sine, cosine) = (sin(world.heading), cos(world.heading))
    func draw(_ shape: [[SIMD2<Double>]], _ color: UInt8) {
      for line in shape {
        let points = line.map { point in
          world.position * scale + SIMD2(point.x * cosine - point.y * sine, point.x * sine + point.y * cosine) * size
        }
        for (start, end) in zip(points, points.dropFirst()) { screen.line(start, end, color) }
      }
    }
    if world.flame > 0 { draw(flame, 208) }
    draw(ship, 159)
    let degrees = Int((world.heading * 180 / .pi).rounded()) % 360
    screen.text(String(format: " heading %03d  speed %03d  %@", degrees, Int(world.speed.rounded()), note))
    return screen
  }
}
