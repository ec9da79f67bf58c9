import Foundation

/// One run: the groups that were asked for, then the report.
struct Benchmark {
  let options: Options

  init(_ options: Options) { self.options = options }

  /// Whether everything that must be reached was.
  func run() throws -> Bool {
    guard Self.groups.contains(where: wants) else {
      throw UsageError(message: "No group's name contains \(options.filter): \(Self.groups.joined(separator: ", "))")
    }
    let machine = Machine.line(compiler: options.compiler)
    Progress.tell(machine)
    var runner = Runner(rounds: options.rounds, figures: Figures(machine: machine, rounds: options.rounds))
    if options.filter == TilesGroup.name {
      try TilesGroup.run(&runner)
    } else if wants(TilesGroup.name) {
      runner.figures.measurements += try TilesGroup.runApart(rounds: options.rounds)
    }
    if wants(DungeonGroup.name) { try DungeonGroup.run(&runner, protobufLibrary: options.protobuf) }
    if wants(KingdomGroup.name) { try KingdomGroup.run(&runner) }
    if wants(CardGroup.name) { try CardGroup.run(&runner) }
    if wants(KeyedGroup.name) { try KeyedGroup.run(&runner) }
    if wants(CaptureGroup.name) { try CaptureGroup.run(&runner) }
    if wants(MemoryProbe.group) { runner.figures.memory = try MemoryProbe.measureAll() }
    let figures = runner.figures
    if options.json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      FileHandle.standardOutput.write(try encoder.encode(figures) + Data("\n".utf8))
    } else {
      FileHandle.standardOutput.write(Data(Report(figures: figures).text.utf8))
    }
    if let root = options.root {
      try Documents(root: root).write(figures)
      Progress.tell("wrote \((Documents.files + Documents.pictures).joined(separator: ", "))")
    }
    return figures.goals.allSatisfy(\.meetsMust)
  }

  private static let groups = [
    TilesGroup.name, DungeonGroup.name, KingdomGroup.name, CardGroup.name, KeyedGroup.name, CaptureGroup.name, MemoryProbe.group,
  ]

  private func wants(_ group: String) -> Bool { options.filter.isEmpty || group.contains(options.filter) }
}
