import BenchmarkKit

BenchmarkProgram.run("StoreBenchmark") { arguments in
  let saves = try arguments.number("--saves", 60, "durable saves of each way")
  let captures = try arguments.number("--captures", 3_000, "captures at 120 a second")
  let openings = try arguments.number("--openings", 15, "openings of each store")
  let scores = try arguments.number("--scores", 1_000_000, "scores on the largest board")
  let onlyScores = arguments.flag("--only-scores", "nothing but the boards")
  let (probe, machine) = (try arguments.probe().map(StoreProbe.init), Machine.line(compiler: arguments.compiler))
  return {
    if let probe {
      try probe.run()
      return nil
    }
    var figures = StoreFigures(machine: machine)
    if !onlyScores { try figures.measure(saves: saves, captures: captures, openings: openings) }
    figures.scores = try ScoreFigures.measure(upTo: scores)
    return StoreReport(figures)
  }
}
