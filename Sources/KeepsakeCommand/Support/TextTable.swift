#if Cloud
import KeepsakeInspection

/// A table in Markdown that is aligned as text, too: the first column to the left, the others to the right.
enum TextTable {
  /// The fewest columns to which the first cell of a row is cut.
  private static let shortestName = 12

  /// - Parameters:
  ///   - rows: As many cells in each as in `header`.
  ///   - terminal: Where it is shown. If the table is too wide for it, the first column is cut; if that isn't enough,
  ///     each row is written as lines, one for each cell.
  static func text(_ header: [String], _ rows: [[String]], on terminal: Terminal = .plain) -> String {
    let all = [header] + rows
    var widths = header.indices.map { column in all.map { Terminal.columns(of: $0[column]) }.max() ?? 0 }
    if let width = terminal.width, let name = widths.first {
      let excess = widths.reduce(1) { $0 + $1 + 3 } - width
      if excess > 0 {
        guard name - excess >= shortestName else { return lines(header, rows, on: terminal) }
        widths[0] = name - excess
      }
    }
    func line(_ cells: [String]) -> String {
      let padded = cells.enumerated().map { column, cell in
        let cell = Terminal.cut(cell, to: max(widths[column], 1))
        let space = String(repeating: " ", count: max(widths[column] - Terminal.columns(of: cell), 0))
        return column == 0 ? cell + space : space + cell
      }
      return "| " + padded.joined(separator: " | ") + " |"
    }
    let rule = widths.enumerated().map { column, width in
      String(repeating: "-", count: width + 1) + (column == 0 ? "-" : ":")
    }
    return ([line(header), "|" + rule.joined(separator: "|") + "|"] + rows.map(line)).joined(separator: "\n")
  }

  /// Each row as its name and, below that, a line for each other cell.
  private static func lines(_ header: [String], _ rows: [[String]], on terminal: Terminal) -> String {
    let width = header.dropFirst().map(Terminal.columns(of:)).max() ?? 0
    return rows.map { row in
      let cells = zip(header, row).dropFirst().map { name, cell in
        "  \(name)\(String(repeating: " ", count: width - Terminal.columns(of: name)))  \(cell)"
      }
      return ([terminal.paint(terminal.cut(row.first ?? ""), .heading)] + cells).joined(separator: "\n")
    }.joined(separator: "\n")
  }
}
#endif
