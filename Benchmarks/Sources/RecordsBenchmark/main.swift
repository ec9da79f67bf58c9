import BenchmarkKit
import Foundation

do {
  let options = try RecordsOptions(Array(CommandLine.arguments.dropFirst()))
  if options.help {
    print(RecordsOptions.usage)
  } else {
    let figures = try RecordsFigures.measure(counts: options.counts, compiler: options.compiler)
    let report = RecordsReport(figures: figures)
    if options.json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      FileHandle.standardOutput.write(try encoder.encode(figures) + Data("\n".utf8))
    } else {
      print(report.text)
    }
    if let root = options.root {
      let documents = Documents(root: root)
      try documents.write(report.sections, to: ["docs/FILES_OR_DATABASE.md", "Sources/Keepsake/Documentation.docc/FilesOrDatabase.md"])
      try documents.draw(CrossoverPlot(figures).svg, to: ["docs/files-or-database.svg", "Sources/Keepsake/Documentation.docc/files-or-database.svg"])
    }
    if options.check, !report.hasCrossover { exit(1) }
  }
} catch {
  let message = (error as? UsageError)?.message ?? (error as? BenchmarkError)?.message ?? "\(error)"
  FileHandle.standardError.write(Data("\(message)\n".utf8))
  exit(2)
}
