import Foundation

/// Figures and tables as people read them.
public enum Format {
  /// About three digits, without more decimals than mean something.
  public static func number(_ value: Double) -> String {
    if value == value.rounded(), abs(value) < 1e9 { return grouped(Int(value)) }
    if value >= 100 { return grouped(Int(value.rounded())) }
    return String(format: value >= 10 ? "%.1f" : value >= 0.1 ? "%.2f" : "%.3f", value)
  }

  public static func microseconds(_ value: Double) -> String {
    value >= 100 ? grouped(Int(value.rounded())) : String(format: value >= 10 ? "%.1f" : "%.2f", value)
  }

  /// 330 µs, 1.2 ms, 1.3 s
  public static func time(microseconds value: Double) -> String {
    switch value {
    case ..<1_000: "\(number(value >= 10 ? value.rounded() : value)) µs"
    case ..<1_000_000: "\(number(value / 1_000)) ms"
    default: "\(number(value / 1_000_000)) s"
    }
  }

  public static func mebibytes(_ bytes: Int) -> String { String(format: "%.1f MiB", Double(bytes) / 1_048_576) }

  /// With a comma at each thousand.
  public static func grouped(_ value: Int) -> String {
    var digits = Array(String(abs(value)))
    var place = digits.count - 3
    while place > 0 {
      digits.insert(",", at: place)
      place -= 3
    }
    return (value < 0 ? "-" : "") + String(digits)
  }

  /// A table in Markdown that also reads well as text. The first column stands left, the others right unless `left`
  /// names them.
  public static func table(_ header: [String], _ rows: [[String]], left: Set<Int> = []) -> String {
    let all = [header] + rows
    let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    func line(_ cells: [String]) -> String {
      let padded = cells.enumerated().map { column, cell in
        let space = String(repeating: " ", count: widths[column] - cell.count)
        return column == 0 || left.contains(column) ? cell + space : space + cell
      }
      return "| " + padded.joined(separator: " | ") + " |"
    }
    let rule = header.indices.map { column in
      let dashes = String(repeating: "-", count: max(widths[column], 3) + 1)
      return column == 0 || left.contains(column) ? dashes + "-" : dashes + ":"
    }
    return ([line(header), "|" + rule.joined(separator: "|") + "|"] + rows.map(line)).joined(separator: "\n")
  }
}
