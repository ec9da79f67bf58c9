import Foundation
import Keepsake

/// The reason why the game can't be played, as a sentence for the player.
struct Problem: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) { self.description = description }
}

#if canImport(Darwin)
private let resources = "bundle"
#else
private let resources = "resources"
#endif

/// The options with which the game can be started.
struct Options {
  static let usage = """
    Space [--data FOLDER] [--assets FOLDER] [--every SECONDS]
      --data     the folder of the saved ship (by default the platform's folder for such data)
      --assets   the folder of the game's own files (by default those that it was built with)
      --every    seconds from one save to the next (10 by default)
    For its tests: [--steps N] [--record FILE] [--print] [--within SECONDS]
    """

  var data: URL?
  var assets = Bundle.main.bundleURL.appendingPathComponent("keepsake_Space.\(resources)/Assets")
  var every = 10.0
  /// The number of steps after which the game ends.
  var steps: Int?
  /// A file to which `World.bits` is written as a line for each frame.
  var record: URL?
  /// How long a save may take when the game is ended. The usual time is what systems grant a game; a test doesn't fail
  /// because its machine is busy.
  var within = Autosave<World>.standardDeadline
  /// Whether the game only prints what is saved.
  var prints = false

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let name = rest.popFirst() {
      if name == "--print" {
        prints = true
        continue
      }
      guard let value = rest.popFirst() else {
        throw Problem("\(Self.usage)\n\(name) is not known, or its value is missing.")
      }
      switch name {
      case "--data": data = URL(fileURLWithPath: value, isDirectory: true)
      case "--assets": assets = URL(fileURLWithPath: value, isDirectory: true)
      case "--record": record = URL(fileURLWithPath: value)
      case "--every": every = try Self.number(value, name)
      case "--within": within = .seconds(try Self.number(value, name))
      case "--steps": steps = Int(try Self.number(value, name))
      default: throw Problem("\(Self.usage)\n\(name) is not known.")
      }
    }
  }

  private static func number(_ text: String, _ name: String) throws -> Double {
    guard let number = Double(text), (0...1e9).contains(number) else {
      throw Problem("\(name) takes a number from 0 to 1,000,000,000.")
    }
    return number
  }
}
