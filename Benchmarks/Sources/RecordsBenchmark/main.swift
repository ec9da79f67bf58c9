import BenchmarkKit

BenchmarkProgram.run("RecordsBenchmark") { arguments in
  let most = try arguments.number("--most", 1_000_000, in: 10...1_000_000, "the largest number of records")
  let machine = Machine.line(compiler: arguments.compiler)
  // From 10 on, each ten times the one before.
  let counts = sequence(first: 10) { $0 * 10 }.prefix { $0 <= most }.map { $0 }
  return { try RecordsReport(figures: RecordsFigures.measure(counts: counts, machine: machine)) }
}
