import BenchmarkKit

BenchmarkProgram.run("StoreBenchmark") { arguments in
  let saves = try arguments.number("--saves", 60, "durable saves of each way")
  let captures = try arguments.number("--captures", 3_000, "captures at 120 a second")
  let openings = try arguments.number("--openings", 15, "openings of each store")
  let slots = try arguments.number("--slots", 10_000, "slots, of small saves, at most")
  let tasks = try arguments.number("--tasks", 500, "tasks that save at once")
  let scores = try arguments.number("--scores", 1_000_000, "scores on the largest board")
  let onlyScores = arguments.flag("--only-scores", "nothing but the boards")
  let onlySlots = arguments.flag("--only-slots", "nothing but the slots and tasks")
  let (probe, machine) = (try arguments.probe().map(StoreProbe.init), Machine.line(compiler: arguments.compiler))
  return {
    if let probe {
      try probe.run()
      return nil
    }
    var figures = StoreFigures(machine: machine)
    if !onlyScores, !onlySlots { try figures.measure(saves: saves, captures: captures, openings: openings) }
    if !onlyScores { figures.slots = try SlotFigures.measure(upTo: slots, tasks: tasks) }
    if !onlySlots { figures.scores = try ScoreFigures.measure(upTo: scores) }
    return StoreReport(figures)
  }
}
