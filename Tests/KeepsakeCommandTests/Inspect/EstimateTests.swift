#if Cloud
import Foundation
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake estimate` shows what keeping every version of one's own saves would cost.
@Suite struct EstimateTests {
  private let folder = TemporaryFolder.url("estimates")

  private func write(_ files: [String: Data]) throws {
    for (name, bytes) in files {
      let url = folder.appendingPathComponent(name)
      try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try bytes.write(to: url)
    }
  }

  private func names(_ series: SaveSeries) -> [String] { series.files.map(\.lastPathComponent) }

  @Test("files whose names differ in their last number are versions of one save, oldest first, however many digits")
  func groups() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let empty = Data()
    try write([
      "2.sav": empty, "10.sav": empty, "1.sav": empty, "a/slot1_v009": empty, "a/slot1_v10": empty, "a/slot2_v1": empty,
      "readme": empty,
    ])
    let series = try SaveSeries.find([folder.path]).series
    #expect(series.map(\.name) == ["#.sav", "a/slot1_v#", "a/slot2_v#", "readme"])
    #expect(
      series.map(names) == [["1.sav", "2.sav", "10.sav"], ["slot1_v009", "slot1_v10"], ["slot2_v1"], ["readme"]])
    // Files that are given by name are one series, in the given order.
    let named = try SaveSeries.find(["2.sav", "1.sav"].map { folder.appendingPathComponent($0).path }).series
    #expect(named.map(names) == [["2.sav", "1.sav"]])
    #expect(throws: CommandFailure.self) { try SaveSeries.find([folder.appendingPathComponent("nowhere").path]) }
  }

  @Test("the figures are those of a store that holds all versions, and no file is changed")
  func figures() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    var lines = (0..<4_000).map { "tile \($0) of kind \($0 * 7919 % 41), hardness \($0 * 104_729 % 1009)" }
    var files: [String: Data] = [:]
    for version in 1...30 {
      lines[version * 97] = "changed in \(version)"
      files["save\(version)"] = Data(lines.joined(separator: "\n").utf8)
    }
    try write(files)
    let estimate = try SeriesEstimate(of: #require(SaveSeries.find([folder.path]).series.first)) { _ in }
    #expect(estimate.versionCount == 30)
    #expect(estimate.bytes == files.values.reduce(0) { $0 + $1.count })
    #expect(estimate.fullFrameCount == 1)
    #expect(estimate.leastBytes * 10 < estimate.aloneBytes)
    #expect(Double(estimate.encodedBytes) <= 1.5 * Double(estimate.leastBytes))
    #expect(
      estimate.loadAloneMilliseconds > 0 && estimate.loadNewestMilliseconds > 0 && estimate.loadOldestMilliseconds > 0)
    for (name, bytes) in files {
      #expect(try Data(contentsOf: folder.appendingPathComponent(name)) == bytes, "\(name)")
    }
    // One line for the header, one below it and one for the series, all of the same width.
    let table = SeriesEstimate.table([estimate]).split(separator: "\n")
    #expect(table.count == 3 && Set(table.map(\.count)).count == 1)
  }

  #if os(Linux)
  @Test("what can't be read in a folder is skipped and listed, and the status says why; stores aren't counted")
  func skipped() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try write([
      "a1": Data("one".utf8), "a2": Data("two".utf8), "large": Data(), "store/store.sqlite": Data(),
      "store/backup-1.sqlite": Data(), ".keepsake/store.sqlite": Data(), ".keepsake/folder": Data(),
    ])
    let large = try FileHandle(forWritingTo: folder.appendingPathComponent("large"))
    try large.truncate(atOffset: (256 << 20) + 1)
    try large.close()
    let name: [CChar] = Array(folder.path.utf8CString.dropLast()) + [0x2F, 0x62, -1, -2, 0]
    let file = open(name, O_CREAT | O_WRONLY, 0o600)
    try #require(file >= 0)
    close(file)
    let found = try SaveSeries.find([folder.path])
    #expect(found.series.map(\.name) == ["a#"] && found.series.map(names) == [["a1", "a2"]])
    #expect(found.skipped.count == 2)
    #expect(found.skipped.contains { $0.path.hasSuffix("/large") && $0.failure.kind == .data })
    #expect(found.skipped.contains { $0.failure.message == "its name isn't valid UTF-8" })
    let ended = try Tool.run(["estimate", folder.path])
    #expect(ended.status == 66 && ended.text.contains("| a#") && ended.text.contains("skipped "), "\(ended.errors)")
    let json = try Tool.run(["estimate", folder.path, "--json"])
    let object = try JSONSerialization.jsonObject(with: json.output) as? [String: Any]
    let skipped = object?["unreadable"] as? [[String: Any]]
    #expect(json.status == 66 && skipped?.count == 2 && skipped?.allSatisfy { $0["error"] is [String: Any] } == true)
    #expect(try Tool.run(["estimate", folder.path + "/store"]).status == 66)
  }
  #endif

  @Test("empty saves and incompressible saves have figures, too")
  func extremes() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    var random = SystemRandomNumberGenerator()
    let noise = Data((0..<50_000).map { _ in UInt8.random(in: 0...255, using: &random) })
    try write(["empty1": Data(), "empty2": Data(), "noise1": noise, "noise2": Data(noise.reversed())])
    let estimates = try SaveSeries.find([folder.path]).series.map { try SeriesEstimate(of: $0) { _ in } }
    #expect(estimates.map(\.bytes) == [0, 100_000])
    #expect(estimates[1].encodedBytes <= estimates[1].aloneBytes)
  }

  @Test("all versions of real saves take at most 1.5 times the least that deltas could take", .needsRealFiles)
  func corpus() throws {
    let series = try SaveSeries.find([try #require(RealFiles.folder).path + "/saves"]).series
    #expect(!series.isEmpty)
    let estimates = try series.map { try SeriesEstimate(of: $0) { _ in } }
    print(SeriesEstimate.table(estimates))
    for estimate in estimates {
      #expect(Double(estimate.encodedBytes) <= 1.5 * Double(estimate.leastBytes), "\(estimate.name)")
    }
  }
}
#endif
