import BenchmarkKit
import Foundation

/// What was asked for on the command line.
struct StoreOptions {
  static let usage = """
    Usage: StoreBenchmark [options]; Scripts/bench.sh builds and runs it.
      --saves N         durable saves of each way (60)
      --captures N      captures at 120 a second (3000)
      --openings N      openings of each store (15)
      --scores N        scores on the largest board (1000000)
      --only-scores     nothing but the boards
      --json            all figures as JSON on standard output, instead of tables
      --write FOLDER    put the tables into the repository in that folder
      --check           end with status 1 if a goal that must be reached isn't
      --compiler TEXT   what compiled this, for the line about the machine
    """

  var help = false
  var saves = 60
  var captures = 3_000
  var openings = 15
  var scores = 1_000_000
  var onlyScores = false
  var json = false
  var root: URL?
  var check = false
  var compiler = "Swift"
  /// Set in the processes that this one starts.
  var probe: StoreProbe?

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value(_ option: String) throws -> String {
      guard let value = rest.popFirst() else { throw UsageError(message: "\(option) needs a value") }
      return value
    }
    func number(_ option: String) throws -> Int {
      guard let number = Int(try value(option)), (1...1_000_000).contains(number) else {
        throw UsageError(message: "\(option) takes a number from 1 to 1000000")
      }
      return number
    }
    while let option = rest.popFirst() {
      switch option {
      case "--saves": saves = try number(option)
      case "--captures": captures = try number(option)
      case "--openings": openings = try number(option)
      case "--scores": scores = try number(option)
      case "--only-scores": onlyScores = true
      case "--json": json = true
      case "--write": root = URL(filePath: try value(option), directoryHint: .isDirectory)
      case "--check": check = true
      case "--help": help = true
      case "--compiler": compiler = try value(option)
      case "--probe": probe = try StoreProbe(try value(option))
      default: throw UsageError(message: "There is no option \(option)\n\(Self.usage)")
      }
    }
  }
}
