import BenchmarkKit
import Foundation

/// What was asked for on the command line.
struct RecordsOptions {
  static let usage = """
    Usage: RecordsBenchmark [options]; Scripts/bench.sh builds and runs it.
      --most N          the largest number of records (1000000)
      --json            all figures as JSON on standard output, instead of tables
      --write FOLDER    put the tables and the plot into the repository in that folder
      --check           end with status 1 if one changed record is nowhere quicker in records than in a slot
      --compiler TEXT   what compiled this, for the line about the machine
    """

  var help = false
  /// From 10 on, each ten times the one before.
  var counts: [Int] { sequence(first: 10) { $0 * 10 }.prefix { $0 <= most }.map { $0 } }
  var most = 1_000_000
  var json = false
  var root: URL?
  var check = false
  var compiler = "Swift"

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value(_ option: String) throws -> String {
      guard let value = rest.popFirst() else { throw UsageError(message: "\(option) needs a value") }
      return value
    }
    while let option = rest.popFirst() {
      switch option {
      case "--most":
        guard let number = Int(try value(option)), (10...1_000_000).contains(number) else {
          throw UsageError(message: "\(option) takes a number from 10 to 1000000")
        }
        most = number
      case "--json": json = true
      case "--write": root = URL(filePath: try value(option), directoryHint: .isDirectory)
      case "--check": check = true
      case "--help": help = true
      case "--compiler": compiler = try value(option)
      default: throw UsageError(message: "There is no option \(option)\n\(Self.usage)")
      }
    }
  }
}
