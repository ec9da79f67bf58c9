import BenchmarkKit

BenchmarkProgram.run("AssetBenchmark") { arguments in
  let count = try arguments.number("--count", 10_000, in: 1...100_000, "assets")
  let rounds = try arguments.number("--rounds", 5, "rounds of each way")
  let (probe, machine) = (try arguments.probe().map(AssetProbe.init), Machine.line(compiler: arguments.compiler))
  return {
    if let probe {
      try probe.run()
      return nil
    }
    return try AssetTables(figures: AssetFigures.measure(count: count, rounds: rounds, machine: machine))
  }
}
