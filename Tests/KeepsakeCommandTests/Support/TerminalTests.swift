#if Cloud
import Foundation
import Testing

@testable import KeepsakeCommand

/// Colors and widths: what a terminal shows, and what a pipe gets.
@Suite struct TerminalTests {
  private func hasColor(_ environment: [String: String], isTerminal: Bool = true, noColor: Bool = false) -> Bool {
    Terminal(
      isTerminal: isTerminal, columns: 80, environment: environment, noColor: noColor
    ).hasColor
  }

  @Test("a terminal has colors and a pipe doesn't; what forbids them counts more than what asks for them")
  func colors() {
    let xterm = ["TERM": "xterm-256color"]
    #expect(hasColor(xterm))
    #expect(!hasColor(xterm, isTerminal: false))
    #expect(!hasColor(xterm, noColor: true))
    #expect(!hasColor([:]) && !hasColor(["TERM": "dumb"]))
    #expect(!hasColor(xterm.merging(["CLICOLOR": "0"]) { $1 }))
    #expect(!hasColor(xterm.merging(["NO_COLOR": "1"]) { $1 }))
    // As no-color.org has it, an empty one says nothing.
    #expect(hasColor(xterm.merging(["NO_COLOR": ""]) { $1 }))
    #expect(hasColor(["CLICOLOR_FORCE": "1"], isTerminal: false))
    #expect(!hasColor(["CLICOLOR_FORCE": "0"], isTerminal: false))
    #expect(!hasColor(["CLICOLOR_FORCE": "1", "NO_COLOR": "1"]))
    #expect(!hasColor(["CLICOLOR_FORCE": "1"], noColor: true))
  }

  @Test("only a terminal has a width, and one that is too narrow for anything has none")
  func width() {
    #expect(Terminal(isTerminal: true, columns: 80, environment: [:]).width == 80)
    #expect(Terminal(isTerminal: true, columns: nil, environment: ["COLUMNS": "132"]).width == 132)
    #expect(Terminal(isTerminal: true, columns: 3, environment: [:]).width == nil)
    #expect(Terminal(isTerminal: false, columns: 80, environment: ["COLUMNS": "80"]).width == nil)
  }

  @Test("text is cut at a number of columns, of which a character of East Asia takes two")
  func cut() {
    #expect(Terminal.cut("garden", to: 6) == "garden")
    #expect(Terminal.cut("garden", to: 5) == "gard…")
    #expect(Terminal.columns(of: "花園") == 4)
    #expect(Terminal.cut("花園の庭", to: 6) == "花園…")
    #expect(
      Terminal(isTerminal: true, columns: 30, environment: [:]).cut(String(repeating: "a", count: 40)).count == 30)
    #expect(Terminal.plain.cut(String(repeating: "a", count: 400)).count == 400)
  }

  @Test("a table that is too wide has a shorter first column, or else a line for each cell")
  func tables() {
    let rows = [["a save with a long name", "1", "22"], ["b", "333", "4"]]
    let header = ["", "one", "two"]
    func table(_ width: Int?) -> [String] {
      let terminal = width.map { Terminal(isTerminal: true, columns: $0, environment: [:]) } ?? .plain
      return TextTable.text(header, rows, on: terminal).split(separator: "\n").map(String.init)
    }
    #expect(table(nil)[2] == "| a save with a long name |   1 |  22 |")
    #expect(table(80) == table(nil))
    let narrow = table(30)
    #expect(narrow.count == 4 && narrow.allSatisfy { $0.count == 30 }, "\(narrow)")
    #expect(narrow[2] == "| a save with a… |   1 |  22 |")
    #expect(table(25) == ["a save with a long name", "  one  1", "  two  22", "b", "  one  333", "  two  4"])
  }
}
#endif
