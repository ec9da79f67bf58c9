import BenchmarkKit
import Foundation
import GameWorlds

do {
  let options = try Options(Array(CommandLine.arguments.dropFirst()))
  if options.help {
    print(Options.usage)
    exit(0)
  }
  if let probe = options.probe {
    try probe.run()
    exit(0)
  }
  let met = try Benchmark(options).run()
  exit(options.check && !met ? 1 : 0)
} catch {
  let message = (error as? UsageError)?.message ?? (error as? BenchmarkError)?.message ?? "\(error)"
  FileHandle.standardError.write(Data("\(message)\n".utf8))
  exit(2)
}
