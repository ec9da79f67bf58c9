import BenchmarkKit
import Foundation

do {
  let options = try StoreOptions(Array(CommandLine.arguments.dropFirst()))
  if options.help {
    print(StoreOptions.usage)
  } else if let probe = options.probe {
    try probe.run()
  } else {
    let figures = try StoreFigures.measure(options)
    let report = StoreReport(figures)
    if options.json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      FileHandle.standardOutput.write(try encoder.encode(figures) + Data("\n".utf8))
    } else {
      print(report.text)
    }
    if let root = options.root { try Documents(root: root).write(report.sections, to: ["docs/BENCHMARKS.md"]) }
    if options.check, report.goals.unmet != nil { exit(1) }
  }
} catch {
  let message = (error as? UsageError)?.message ?? (error as? BenchmarkError)?.message ?? "\(error)"
  FileHandle.standardError.write(Data("\(message)\n".utf8))
  exit(2)
}
