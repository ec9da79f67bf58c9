#if Cloud
/// A table in Markdown that is aligned as text, too: the first column to the left, the others to the right.
enum TextTable {
  /// - Parameter rows: As many cells in each as in `header`.
  static func text(_ header: [String], _ rows: [[String]]) -> String {
    let all = [header] + rows
    let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    func line(_ cells: [String]) -> String {
      let padded = cells.enumerated().map { column, cell in
        let space = String(repeating: " ", count: widths[column] - cell.count)
        return column == 0 ? cell + space : space + cell
      }
      return "| " + padded.joined(separator: " | ") + " |"
    }
    let rule = widths.enumerated().map { column, width in
      String(repeating: "-", count: width + 1) + (column == 0 ? "-" : ":")
    }
    return ([line(header), "|" + rule.joined(separator: "|") + "|"] + rows.map(line)).joined(separator: "\n")
  }
}
#endif
