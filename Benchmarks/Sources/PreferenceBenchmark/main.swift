import BenchmarkKit

BenchmarkProgram.run("PreferenceBenchmark") { arguments in
  let openings = try arguments.number("--openings", 15, in: 1...1_000, "openings of each kind")
  let machine = Machine.line(compiler: arguments.compiler)
  return { PreferenceReport(try PreferenceFigures.measure(openings: openings, machine: machine)) }
}
