import BenchmarkKit

BenchmarkProgram.run("ArchiveBenchmark") { arguments in
  let filter =
    try arguments.text(
      "--filter", of: "TEXT", "only groups whose name contains it: \(Benchmark.groups.joined(separator: ", "))") ?? ""
  // Figures from less would not mean much, from more would take too long.
  let rounds = try arguments.number("--rounds", 12, in: 1...1_000, "rounds of each group")
  let protobuf = try arguments.text("--protobuf", of: "PATH", "the library with Protocol Buffers' C++ encoder")
  let (probe, machine) = (try arguments.probe().map(MemoryProbe.named), Machine.line(compiler: arguments.compiler))
  if arguments.root != nil, !filter.isEmpty {
    throw UsageError(message: "--write needs all figures, so it doesn't go with --filter")
  }
  return {
    if let probe {
      try probe.run()
      return nil
    }
    return Report(figures: try Benchmark(filter: filter, rounds: rounds, protobuf: protobuf, machine: machine).run())
  }
}
