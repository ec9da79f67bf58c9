import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

/// The joins in Examples/ForeignClient were written from docs/PROTOCOL.md. Where their result differs from ours, the
/// client, the document or our code is wrong.
@Suite struct ForeignJoinTests {
  private static let folder = Repository.root.appending(path: "Examples/ForeignClient")
  private static let hasPython = ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"].contains {
    FileManager.default.isExecutableFile(atPath: "\($0)/python3")
  }

  /// Random values of rules of a later release. The same id may occur twice, and values may list each other as joined.
  private static func later(using random: inout SeededGenerator) -> CellState {
    var entries: [LaterValueID: LaterValue.Entry] = [:]
    for number in UInt64(0)..<5 where random.once(in: 2) {
      let over = (UInt64(0)..<5).filter { $0 != number && random.once(in: 4) }.map { LaterValueID(high: 0, low: $0) }
      entries[LaterValueID(high: 0, low: number)] = LaterValue.Entry(
        rule: random.once(in: 3) ? "quorum" : "vote", content: Data([UInt8.random(in: 0...2, using: &random)]),
        over: Set(over))
    }
    entries[LaterValueID(high: 0, low: 9)] = LaterValue.Entry(rule: "vote", content: Data())
    return CellState(value: .later(LaterValue(entries)))
  }

  @Test(
    "the client in Python and the package join the same two values to the same result",
    .enabled(if: hasPython, "skipped: python3 isn't installed"), arguments: [1, 2, 3] as [UInt64])
  func joins(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var pairs = (0..<1_500).map { _ in [CellLawTests.state(using: &random), CellLawTests.state(using: &random)] }
    let few = CellLawTests.few
    pairs += few.indices.map { [few[$0], few[($0 + Int(seed)) % few.count]] }
    pairs += (0..<200).map { _ in [Self.later(using: &random), Self.later(using: &random)] }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    let folder = TemporaryFolder.url()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // A folder left behind among the temporary files does no harm.
    defer { try? FileManager.default.removeItem(at: folder) }
    let (input, output) = (folder.appendingPathComponent("pairs"), folder.appendingPathComponent("joined"))
    try Data(try pairs.map { try encoder.encode($0) + Data("\n".utf8) }.joined()).write(to: input)
    try Data().write(to: output)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    let program = "import json, sys, joins\nfor line in sys.stdin: print(json.dumps(joins.join(*json.loads(line))))"
    process.arguments = ["python3", "-c", program]
    process.currentDirectoryURL = Self.folder
    process.environment = ProcessInfo.processInfo.environment.merging(["PYTHONDONTWRITEBYTECODE": "1"]) { $1 }
    process.standardInput = try FileHandle(forReadingFrom: input)
    process.standardOutput = try FileHandle(forWritingTo: output)
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    let lines = try Data(contentsOf: output).split(separator: UInt8(ascii: "\n"))
    try #require(lines.count == pairs.count)
    for (pair, line) in zip(pairs, lines) {
      // Compared as JSON, because decoding with our own reader could hide a difference.
      let theirs = try JSONSerialization.jsonObject(with: Data(line)) as? NSDictionary
      let ours =
        try JSONSerialization.jsonObject(with: try encoder.encode(pair[0].joined(with: pair[1]))) as? NSDictionary
      #expect(theirs == ours, "seed \(seed): \(pair)")
    }
  }
}
