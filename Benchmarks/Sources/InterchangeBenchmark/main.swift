import BenchmarkKit

BenchmarkProgram.run("InterchangeBenchmark") { arguments in
  let rounds = try arguments.number("--rounds", 15, in: 1...1_000, "measurements of each")
  let corpus = try arguments.text(
    "--corpus", of: "FOLDER", "real files in bplist_ok and nskeyed: the largest that Foundation reads, too")
  let machine = Machine.line(compiler: arguments.compiler)
  return { InterchangeReport(try InterchangeFigures.measure(rounds: rounds, corpus: corpus, machine: machine)) }
}
