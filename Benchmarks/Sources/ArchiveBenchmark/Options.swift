import BenchmarkKit
import Foundation

/// What was asked for on the command line.
struct Options {
  static let usage = """
    Usage: ArchiveBenchmark [options]; Scripts/bench.sh builds and runs it.
      --filter TEXT     only groups whose name contains it: dungeon, kingdom, hero, card, tiles, keyed, capture, memory
      --rounds N        rounds of each group (12)
      --json            all figures as JSON on standard output, instead of tables
      --write FOLDER    put tables and plot into the repository in that folder; not with --filter
      --check           end with status 1 if a goal that must be reached isn't
      --protobuf PATH   the library with Protocol Buffers' C++ encoder
      --compiler TEXT   what compiled this, for the line about the machine
    """

  /// Figures from less would not mean much, from more would take too long.
  static let roundLimits = 1...1_000

  var filter = ""
  var help = false
  var rounds = 12
  var json = false
  var root: URL?
  var check = false
  var protobuf: String?
  var compiler = "Swift"
  /// Set in the processes that this one starts to measure memory.
  var probe: MemoryProbe?

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value(_ option: String) throws -> String {
      guard let value = rest.popFirst() else { throw UsageError(message: "\(option) needs a value") }
      return value
    }
    while let option = rest.popFirst() {
      switch option {
      case "--filter": filter = try value(option)
      case "--rounds":
        guard let number = Int(try value(option)), Self.roundLimits.contains(number) else {
          throw UsageError(message: "--rounds takes a number from 1 to 1000")
        }
        rounds = number
      case "--json": json = true
      case "--write": root = URL(filePath: try value(option), directoryHint: .isDirectory)
      case "--check": check = true
      case "--help": help = true
      case "--protobuf": protobuf = try value(option)
      case "--compiler": compiler = try value(option)
      case "--memory-probe":
        let name = try value(option)
        guard let known = MemoryProbe(rawValue: name) else { throw UsageError(message: "There is no memory probe \(name)") }
        probe = known
      default: throw UsageError(message: "There is no option \(option)\n\(Self.usage)")
      }
    }
    if root != nil, !filter.isEmpty { throw UsageError(message: "--write needs all figures, so it doesn't go with --filter") }
  }
}
