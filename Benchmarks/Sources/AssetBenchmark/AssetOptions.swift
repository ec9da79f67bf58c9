import BenchmarkKit
import Foundation

/// What was asked for on the command line.
struct AssetOptions {
  static let usage = """
    Usage: AssetBenchmark [options]; Scripts/bench.sh assets builds and runs it.
      --count N         assets (10000)
      --rounds N        rounds of each way (5)
      --json            all figures as JSON on standard output, instead of tables
      --write FOLDER    put the tables into the repository in that folder
      --check           end with status 1 if a goal that must be reached isn't
      --compiler TEXT   what compiled this, for the line about the machine
    """

  var help = false
  var count = 10_000
  var rounds = 5
  var json = false
  var root: URL?
  var check = false
  var compiler = "Swift"
  /// Set in the processes that this one starts.
  var probe: AssetProbe?

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value(_ option: String) throws -> String {
      guard let value = rest.popFirst() else { throw UsageError(message: "\(option) needs a value") }
      return value
    }
    func number(_ option: String) throws -> Int {
      guard let number = Int(try value(option)), (1...100_000).contains(number) else {
        throw UsageError(message: "\(option) takes a number from 1 to 100000")
      }
      return number
    }
    while let option = rest.popFirst() {
      switch option {
      case "--count": count = try number(option)
      case "--rounds": rounds = try number(option)
      case "--json": json = true
      case "--write": root = URL(filePath: try value(option), directoryHint: .isDirectory)
      case "--check": check = true
      case "--help": help = true
      case "--compiler": compiler = try value(option)
      case "--probe": probe = try AssetProbe(try value(option))
      default: throw UsageError(message: "There is no option \(option)\n\(Self.usage)")
      }
    }
  }
}
