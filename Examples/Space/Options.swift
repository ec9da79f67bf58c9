import Foundation

/// Why the game can't be played: a sentence for the player.
struct Problem: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) { self.description = description }
}

#if canImport(Darwin)
private let resources = "bundle"
#else
private let resources = "resources"
#endif

/// What the game may be started with.
struct Options {
  static let usage = """
    Space [--data FOLDER] [--assets FOLDER] [--every SECONDS]
      --data     where the ship is kept (the platform's folder for such data)
      --assets   the game's own files (those that it was built with)
      --every    seconds from one save to the next (10)
    For its tests: [--steps N] [--record FILE] [--print]
    """

  var data: URL?
  var assets = Bundle.main.bundleURL.appendingPathComponent("keepsake_Space.\(resources)/Assets")
  var every = 10.0
  /// Ends by itself after so many steps.
  var steps: Int?
  /// A line for each frame, `World.bits`.
  var record: URL?
  /// Prints what is kept, and nothing else.
  var prints = false

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let name = rest.popFirst() {
      if name == "--print" {
        prints = true
        continue
      }
      guard let value = rest.popFirst() else { throw Problem("\(Self.usage)\n\(name) is not known, or a value is missing.") }
      switch name {
      case "--data": data = URL(fileURLWithPath: value, isDirectory: true)
      case "--assets": assets = URL(fileURLWithPath: value, isDirectory: true)
      case "--record": record = URL(fileURLWithPath: value)
      case "--every": every = try Self.number(value, name)
      case "--steps": steps = Int(try Self.number(value, name))
      default: throw Problem("\(Self.usage)\n\(name) is not known.")
      }
    }
  }

  private static func number(_ text: String, _ name: String) throws -> Double {
    guard let number = Double(text), (0...1e9).contains(number) else { throw Problem("\(name) takes a number from 0 to 1,000,000,000.") }
    return number
  }
}
