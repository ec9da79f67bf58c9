import Foundation

/// What a benchmark found.
public protocol BenchmarkReport {
  associatedtype Figures: Encodable
  var figures: Figures { get }
  /// For the terminal.
  var text: String { get }
  /// Whether everything that must be reached was.
  var isMet: Bool { get }
  /// Puts tables and plots into their places.
  func write(to documents: Documents) throws
}

/// What all benchmarks do with their command line and their figures.
public enum BenchmarkProgram {
  /// Runs a benchmark and ends the process: with 1 if a goal isn't met and `--check` was given, with 2 for an error.
  ///
  /// - Parameters:
  ///   - name: The program's.
  ///   - prepare: Asks for its options, and gives what then measures: nothing to report for a process that another one
  ///     started.
  public static func run(
    _ name: String, _ prepare: (inout BenchmarkArguments) throws -> () throws -> (any BenchmarkReport)?
  ) -> Never {
    do {
      var arguments = try BenchmarkArguments(name, Array(CommandLine.arguments.dropFirst()))
      let measure = try prepare(&arguments)
      if let help = try arguments.finish() {
        print(help)
        exit(0)
      }
      guard let report = try measure() else { exit(0) }
      try write(report, arguments)
      exit(arguments.check && !report.isMet ? 1 : 0)
    } catch {
      let message = (error as? UsageError)?.message ?? (error as? BenchmarkError)?.message ?? "\(error)"
      FileHandle.standardError.write(Data("\(message)\n".utf8))
      exit(2)
    }
  }

  private static func write(_ report: some BenchmarkReport, _ arguments: BenchmarkArguments) throws {
    if arguments.json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      FileHandle.standardOutput.write(try encoder.encode(report.figures) + Data("\n".utf8))
    } else {
      print(report.text)
    }
    if let root = arguments.root { try report.write(to: Documents(root: root)) }
  }
}
