import BenchmarkKit
import Foundation

BenchmarkProgram.run("SyncBenchmark") { arguments in
  let keepsake = try arguments.text("--keepsake", of: "FILE", "the command, built in release: it is the cloud")
  let database = try arguments.text(
    "--database", of: "ADDRESS", "an empty PostgreSQL database; measures one and two servers over it, and nothing else")
  let saves = try arguments.number("--saves", 500, "saves that are waited for on the other device")
  let autosaves = try arguments.number("--autosaves", 10_000, "autosaves of the month")
  let keys = try arguments.number("--keys", 5_000, in: 1...10_000, "values of progress that change in the month")
  let machine = Machine.line(compiler: arguments.compiler)
  return {
    guard let keepsake else {
      throw UsageError(message: "SyncBenchmark needs --keepsake FILE; Scripts/bench.sh sync builds it")
    }
    return SyncReport(
      try SyncFigures.measure(
        keepsake: keepsake, database: database, saves: saves, autosaves: autosaves, keys: keys, machine: machine))
  }
}
