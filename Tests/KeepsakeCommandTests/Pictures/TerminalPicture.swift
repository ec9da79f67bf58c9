import Foundation

/// A picture of what a command prints on a terminal, as SVG.
///
/// It knows the control sequences that set colors (SGR), and no others. The picture has a background of its own, so
/// that it looks the same on light and dark pages.
struct TerminalPicture {
  private struct Style: Equatable {
    var color = "#d7dae0"
    var isBold = false
    var isFaint = false
  }

  private struct Run {
    var column: Int
    var text: String
    var style: Style
  }

  private static let colors = [
    31: "#e8727c", 32: "#98c379", 33: "#e5c07b", 34: "#6cb6ff", 35: "#d18fe8", 36: "#5fc4d1",
  ]
  private static let background = "#1e222a"
  private static let faint = "#8b919c"
  private static let (cellWidth, lineHeight, fontSize, margin) = (8.4, 19.0, 14, 14.0)

  let svg: String

  /// - Parameters:
  ///   - command: What was typed.
  ///   - output: What was printed.
  init(of command: String, _ output: String) {
    let lines =
      [
        [
          Run(column: 0, text: "$ ", style: Style(color: Self.faint)),
          Run(column: 2, text: command, style: Style(isBold: true)),
        ]
      ]
      + output.trimmingSuffix("\n").components(separatedBy: "\n").map(Self.runs)
    let columns = lines.map { $0.last.map { $0.column + $0.text.count } ?? 0 }.max() ?? 0
    let width = Self.number(Double(columns) * Self.cellWidth + 2 * Self.margin)
    let height = Self.number(Double(lines.count) * Self.lineHeight + 2 * Self.margin)
    var parts = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" width="\(width)" height="\(height)" \
      font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="\(Self.fontSize)">
      """,
      "<title>\(Self.escaped(command))</title>",
      "<rect width=\"\(width)\" height=\"\(height)\" rx=\"8\" fill=\"\(Self.background)\"/>",
    ]
    for (index, runs) in lines.enumerated() {
      let y = Self.number(Self.margin + (Double(index) + 0.75) * Self.lineHeight)
      parts += runs.filter { !$0.text.allSatisfy { $0 == " " } }.map { Self.element($0, y) }
    }
    svg = parts.joined(separator: "\n") + "\n</svg>\n"
  }

  /// The length is stated, so that columns stay columns whatever the font is.
  private static func element(_ run: Run, _ y: String) -> String {
    let trimmed = run.text.drop { $0 == " " }
    let column = run.column + run.text.count - trimmed.count
    let text = trimmed.reversed().drop { $0 == " " }.reversed()
    let weight = run.style.isBold ? " font-weight=\"bold\"" : ""
    return """
      <text x="\(number(margin + Double(column) * cellWidth))" y="\(y)" \
      textLength="\(number(Double(text.count) * cellWidth))" lengthAdjust="spacingAndGlyphs" xml:space="preserve" \
      fill="\(run.style.isFaint ? faint : run.style.color)"\(weight)>\(escaped(String(text)))</text>
      """
  }

  private static func runs(_ line: String) -> [Run] {
    var runs: [Run] = []
    var (style, column) = (Style(), 0)
    for (index, part) in line.components(separatedBy: "\u{1B}[").enumerated() {
      var text = Substring(part)
      if index > 0, let end = part.firstIndex(of: "m") {
        for code in part[..<end].split(separator: ";").compactMap({ Int($0) }) {
          switch code {
          case 0: style = Style()
          case 1: style.isBold = true
          case 2: style.isFaint = true
          default: style.color = colors[code] ?? style.color
          }
        }
        text = part[part.index(after: end)...]
      }
      guard !text.isEmpty else { continue }
      runs.append(Run(column: column, text: String(text), style: style))
      column += text.count
    }
    return runs
  }

  private static func number(_ value: Double) -> String { String(format: "%g", (value * 10).rounded() / 10) }

  private static func escaped(_ text: String) -> String {
    text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
      .replacingOccurrences(of: ">", with: "&gt;")
  }
}

extension String {
  fileprivate func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}
