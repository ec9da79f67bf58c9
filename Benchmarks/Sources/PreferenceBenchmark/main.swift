import BenchmarkKit
import Foundation

let usage = """
  Usage: PreferenceBenchmark [options]; Scripts/bench.sh builds and runs it.
    --openings N      openings of each kind (15)
    --json            all figures as JSON on standard output, instead of tables
    --write FOLDER    put the tables into the repository in that folder
    --check           end with status 1 if a goal that must be reached isn't
    --compiler TEXT   what compiled this, for the line about the machine
  """

do {
  var (openings, json, check, compiler): (Int, Bool, Bool, String) = (15, false, false, "Swift")
  var (root, help): (URL?, Bool) = (nil, false)
  var rest = CommandLine.arguments.dropFirst()
  func value(_ option: String) throws -> String {
    guard let value = rest.popFirst() else { throw UsageError(message: "\(option) needs a value") }
    return value
  }
  while let option = rest.popFirst() {
    switch option {
    case "--openings":
      guard let number = Int(try value(option)), (1...1_000).contains(number) else {
        throw UsageError(message: "--openings takes a number from 1 to 1000")
      }
      openings = number
    case "--json": json = true
    case "--write": root = URL(filePath: try value(option), directoryHint: .isDirectory)
    case "--check": check = true
    case "--compiler": compiler = try value(option)
    case "--help": help = true
    default: throw UsageError(message: "There is no option \(option)\n\(usage)")
    }
  }
  if help {
    print(usage)
  } else {
    let figures = try PreferenceFigures.measure(compiler: compiler, openings: openings)
    let report = PreferenceReport(figures)
    if json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      FileHandle.standardOutput.write(try encoder.encode(figures) + Data("\n".utf8))
    } else {
      print(report.text)
    }
    if let root { try Documents(root: root).write(report.sections, to: ["docs/BENCHMARKS.md"]) }
    if check, report.goals.unmet != nil { exit(1) }
  }
} catch {
  let message = (error as? UsageError)?.message ?? (error as? BenchmarkError)?.message ?? "\(error)"
  FileHandle.standardError.write(Data("\(message)\n".utf8))
  exit(2)
}
