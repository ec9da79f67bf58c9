#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

#if canImport(FoundationXML)
import FoundationXML
#endif

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

  @Test("a restore of the version that was current already is drawn as one; a save with other metadata isn't")
  func restoredCurrent() async throws {
    let folder = try TemporaryFolder("graph")
    let at = folder.url.appendingPathComponent("store")
    let slot = Slot<[Int]>("hero")
    let game = try GameData.open("com.example.hero", at: at)
    try await game.saves.save([1], to: slot, SaveMetadata(title: "one"))
    try await game.saves.save([1], to: slot, SaveMetadata(title: "two"))
    try game.close()
    let store = try StoreInput.open(at.path, seal: nil)
    func lines() throws -> [String] { try store.read { try HistoryGraph(of: "hero", in: $0).lines } }
    #expect(try !lines().contains { $0.contains("restored") })
    let current = try #require(try store.read { try $0.history(of: "hero") }.first?.record.id)
    let digits = current.description.prefix(8)
    let second = try RestoreCommand.restore(current.description, of: "hero", in: store).version
    #expect(try lines()[0].contains("[current, restored from \(digits)]"))
    // A restore of the restored one, and one of the first.
    _ = try RestoreCommand.restore(second, of: "hero", in: store)
    #expect(try lines()[0].contains("[current, restored from \(second.prefix(8))]"))
    #expect(try lines()[1].contains("[restored from \(digits)]"))
    #expect(try lines().count(where: { $0.contains("restored") }) == 2)
    #expect(
      try store.read { try HistoryGraph(of: "hero", in: $0).svg(title: "hero") }.contains("restored from \(digits)"))
    try store.close()
    withExtendedLifetime(folder) {}
  }

  @Test("whatever a slot, a title or a device is called, the picture is XML that any parser reads")
  func pictureOfAnyText() throws {
    let controls = (0...0x9F).compactMap { Unicode.Scalar($0) }.filter { $0.value < 0x20 || $0.value > 0x7E }
    let torn = String(decoding: [0x61, 0xED, 0xA0, 0x80, 0xED, 0xB0, 0x80, 0xFF, 0xC0, 0x80, 0xF5], as: UTF8.self)
    let names =
      [
        "]]>", "<![CDATA[ <!-- --> &amp; &#0; &nope; ?>", "\"'`", "\u{FFFE}\u{FFFF}\u{FFFD}\u{1FFFE}",
        "\u{202E}\u{2028}",
      ]
      + controls.map { "a\(Character($0))b" } + ["\r\n\r", torn, "é😀👩‍👩‍👧"]
    for name in names {
      let version = HistoryGraph.Version(
        id: id(1), parents: [], kind: .head, maker: name, pieces: [.init(text: name), .init(text: name, isMaker: true)])
      let pictures = [
        HistoryGraph([version]).svg(title: name),
        LatencyPlot(LoadRecord(), title: name, seconds: 1).svg,
      ]
      for svg in pictures {
        let parser = XMLParser(data: Data(svg.utf8))
        let reader = TextReader()
        parser.delegate = reader
        let isRead = parser.parse()
        #expect(isRead, "\(name.debugDescription): \(String(describing: parser.parserError))")
        let expected = Printable.text(name).replacing("\u{FFFE}", with: "\u{FFFD}").replacing(
          "\u{FFFF}", with: "\u{FFFD}")
        #expect(reader.text.contains(expected), "\(name.debugDescription): \(reader.text.debugDescription)")
      }
    }
  }

  /// Collects the texts of a document.
  private final class TextReader: NSObject, XMLParserDelegate {
    var text = ""

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
  }
}
#endif
