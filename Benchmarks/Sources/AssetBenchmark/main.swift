import BenchmarkKit
import Foundation

do {
  let options = try AssetOptions(Array(CommandLine.arguments.dropFirst()))
  if options.help {
    print(AssetOptions.usage)
  } else if let probe = options.probe {
    try probe.run()
  } else {
    let figures = try AssetFigures.measure(options)
    let tables = AssetTables(figures: figures)
    if options.json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      FileHandle.standardOutput.write(try encoder.encode(figures) + Data("\n".utf8))
    } else {
      print(tables.text)
    }
    if let root = options.root { try Documents(root: root).write(tables.sections, to: ["docs/BENCHMARKS.md"]) }
    if options.check, tables.goals.unmet != nil { exit(1) }
  }
} catch {
  let message = (error as? UsageError)?.message ?? (error as? BenchmarkError)?.message ?? "\(error)"
  FileHandle.standardError.write(Data("\(message)\n".utf8))
  exit(2)
}
