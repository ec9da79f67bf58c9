#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake history --graph`: which version comes from which.
@Suite struct HistoryGraphTests {
  private func id(_ number: UInt64) -> VersionID { VersionID(high: 0, low: number) }

  private func version(_ number: UInt64, _ parents: [UInt64], _ kind: HistoryGraph.Kind = .version)
    -> HistoryGraph.Version
  {
    HistoryGraph.Version(
      id: id(number), parents: parents.map(id), kind: kind, maker: "laptop", pieces: [.init(text: "\(number)")])
  }

  @Test("versions in a line are one column")
  func line() {
    let graph = HistoryGraph([version(3, [2], .head), version(2, [1], .delete), version(1, [])])
    #expect(graph.lines == ["●  3", "×  2", "○  1"])
  }

  @Test("a conflict has a column for each side, and a merge brings them together")
  func merge() {
    let graph = HistoryGraph([
      version(6, [4, 5], .head), version(5, [2]), version(4, [3]), version(3, [2]), version(2, [1]), version(1, []),
    ])
    let drawn = ["●  6", "├─╮", "│ ○  5", "○ │  4", "○ │  3", "├─╯", "○  2", "○  1"]
    #expect(graph.lines == drawn, "\(graph.lines)")
    let open = HistoryGraph([version(3, [1], .head), version(2, [1], .head), version(1, [])])
    #expect(open.lines == ["●  3", "│ ●  2", "├─╯", "○  1"], "\(open.lines)")
  }

  @Test("a line that passes by is crossed, and columns are used again")
  func crossing() {
    let graph = HistoryGraph([
      version(7, [6], .head), version(5, [3], .head), version(4, [3], .head), version(6, [1]), version(3, [1]),
      version(1, []),
    ])
    let drawn = ["●  7", "│ ●  5", "│ │ ●  4", "○ │ │  6", "│ ├─╯", "│ ○  3", "├─╯", "○  1"]
    #expect(graph.lines == drawn, "\(graph.lines)")
    let wide = HistoryGraph([
      version(4, [1], .head), version(3, [2], .head), version(2, []), version(5, [1]), version(1, []),
    ])
    #expect(wide.lines == ["●  4", "│ ●  3", "│ ○  2", "│ ○  5", "├─╯", "○  1"], "\(wide.lines)")
  }

  @Test("a version comes before those that it comes from, whatever the clocks said; a damaged store's circles end")
  func order() {
    #expect(HistoryGraph([version(1, []), version(2, [1], .head)]).lines == ["●  2", "○  1"])
    #expect(HistoryGraph([version(1, [2]), version(2, [1])]).rows.count == 2)
    // Of what isn't shown, the line just ends.
    #expect(HistoryGraph([version(2, [9], .head)]).lines == ["●  2"])
  }

  @Test("on a terminal, each device has its own color, and a line ends where the terminal does")
  func terminal() {
    func version(_ number: UInt64, _ parents: [UInt64], by maker: String) -> HistoryGraph.Version {
      HistoryGraph.Version(
        id: id(number), parents: parents.map(id), kind: .version, maker: maker,
        pieces: [.init(text: maker, isMaker: true), .init(text: String(repeating: "-", count: 40))])
    }
    let graph = HistoryGraph([
      version(3, [2], by: "phone"), version(2, [1], by: "laptop"), version(1, [], by: "phone"),
    ])
    #expect(graph.makers == ["phone", "laptop"])
    let lines = graph.lines(on: Terminal(isTerminal: true, columns: 30, environment: ["TERM": "xterm"]))
    let (cyan, magenta, end) = ("\u{1B}[36m", "\u{1B}[35m", "\u{1B}[0m")
    #expect(lines[0] == "\(cyan)○\(end)  \(cyan)phone\(end)" + String(repeating: "-", count: 21) + "…")
    #expect(lines[1].hasPrefix("\(magenta)○\(end)  \(magenta)laptop\(end)") && lines[2].hasPrefix(cyan))
  }

  @Test("a store's history shows deletes, pins, restores and saves over pruned ones, as text and as a picture")
  func store() async throws {
    let folder = TemporaryFolder.url("graph")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // A leftover folder does no harm.
    defer { try? FileManager.default.removeItem(at: folder) }
    let at = folder.appendingPathComponent("store")
    let slot = Slot<[Int]>("hero")
    let game = try GameData.open(
      "com.example.hero", at: at, history: HistoryRules(newest: 3, hourly: 0, daily: 0, weekly: 0))
    for level in 1...6 { try game.saves.capture([level], to: slot, SaveMetadata(title: "<Level \(level)>")).wait() }
    try game.close()
    let store = try StoreInput.open(at.path, seal: nil)
    let oldest = try #require(try store.read { try $0.history(of: "hero") }.last?.record.id)
    _ = try RestoreCommand.restore(oldest.description, of: "hero", in: store)
    let lines = try store.read { try HistoryGraph(of: "hero", in: $0).lines }
    try store.close()
    let marks = lines.map { String($0.prefix(1)) }
    #expect(marks.first == "●" && marks.dropFirst().allSatisfy { $0 == "○" } && lines.count >= 4, "\(lines)")
    #expect(lines[0].contains("[current, restored from \(oldest.description.prefix(8))]"), "\(lines)")
    #expect(lines.last?.contains("Level") == true)

    let picture = folder.appendingPathComponent("hero.svg").path
    let arguments = [at.path, "hero", "--graph", "--svg", picture]
    #expect(await status(of: HistoryCommand.self, arguments) == 0)
    #expect(await status(of: HistoryCommand.self, arguments) == 73)
    let svg = try String(contentsOfFile: picture, encoding: .utf8)
    #expect(svg.contains("&lt;Level 6") && !svg.contains("<Level"))
    #expect(svg.components(separatedBy: "<circle").count - 1 == lines.count)
    #expect(await status(of: HistoryCommand.self, [at.path, "--graph"]) == 64)
    #expect(await status(of: HistoryCommand.self, [at.path, "nobody", "--graph"]) == 66)
  }
}
#endif
