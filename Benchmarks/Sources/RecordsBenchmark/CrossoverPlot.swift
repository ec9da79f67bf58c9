import BenchmarkKit
import Foundation

/// Lines on two logarithmic scales, as SVG without any dependency; readable on light and dark pages.
struct CrossoverPlot {
  private static let width = 880.0
  private static let left = 62.0
  private static let gap = 22.0
  private static let top = 70.0
  private static let plotHeight = 270.0
  private static let actions: [RecordsFigures.Action] = [.changeOne, .loadAll, .find]

  private let figures: RecordsFigures
  private let panelWidth: Double
  private let times: (low: Int, high: Int)
  private let counts: (low: Int, high: Int)

  init(_ figures: RecordsFigures) {
    self.figures = figures
    panelWidth = (Self.width - Self.left - 20 - Self.gap * Double(Self.actions.count - 1)) / Double(Self.actions.count)
    let shown = figures.points.filter { Self.actions.contains($0.action) }.map(\.microseconds)
    times = (Self.exponent(shown.min() ?? 1, .down), Self.exponent(shown.max() ?? 10, .up))
    counts = (
      Self.exponent(Double(figures.counts.min() ?? 1), .down), Self.exponent(Double(figures.counts.max() ?? 10), .up)
    )
  }

  var svg: String {
    let height = Self.top + Self.plotHeight + 92
    var lines = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(text(Self.width)) \(text(height))" \
      font-family="system-ui, sans-serif" font-size="14">
      """,
      """
        <title>Records of about a hundred bytes in files and in a database: time by their number, both scales \
      logarithmic</title>
      """,
      "  <style>",
      """
          .card { fill: #fbfaf7 } .text { fill: #333 } .soft { fill: #6b6b6b } .line { stroke: #d8d3c6 } .way { fill: \
      none; stroke-width: 2 }
      """,
      """
          .slot { stroke: #3b6ea5 } .archive { stroke: #3b6ea5; stroke-dasharray: 5 4 } .json { stroke: #b0702a } \
      .propertyList { stroke: #8a8f8c }
      """,
      "    .records { stroke: #2f7d54; stroke-width: 3 }",
      "    @media (prefers-color-scheme: dark) {",
      "      .card { fill: #1c1f1e } .text { fill: #e6e6e3 } .soft { fill: #a5a8a5 } .line { stroke: #3b403d }",
      """
            .slot { stroke: #7fb0e6 } .archive { stroke: #7fb0e6 } .json { stroke: #e0a35c } .propertyList { stroke: \
      #9aa09d } .records { stroke: #58b984 }
      """,
      "    }",
      "  </style>",
      "  <rect class=\"card\" width=\"\(text(Self.width))\" height=\"\(text(height))\" rx=\"12\"/>",
    ]
    for (index, action) in Self.actions.enumerated() {
      lines += draw(action, at: Self.left + Double(index) * (panelWidth + Self.gap), isFirst: index == 0)
    }
    lines += legend(y: height - 42)
    lines.append(
      """
        <text class="soft" x="\(text(Self.left))" y="\(text(height - 14))" font-size="12">Across: how many \
      records of about 100 bytes. Both scales logarithmic: each line is ten times the one before.</text>
      """)
    return (lines + ["</svg>"]).joined(separator: "\n") + "\n"
  }

  private func draw(_ action: RecordsFigures.Action, at left: Double, isFirst: Bool) -> [String] {
    let bottom = Self.top + Self.plotHeight
    var lines = [
      """
        <text class="text" x="\(text(left))" y="\(text(Self.top - 26))" font-size="15" \
      font-weight="600">\(action == .changeOne ? "one record changed" : action.title)</text>
      """,
      """
        <text class="soft" x="\(text(left))" y="\(text(Self.top - 10))" \
      font-size="12">\(action == .changeOne ? "until it is durable" : "until it is in memory")</text>
      """,
    ]
    for exponent in times.low...times.high {
      let y = place(time: pow(10, Double(exponent)))
      lines.append("  <path class=\"line\" d=\"M\(text(left)) \(text(y)) H\(text(left + panelWidth))\"/>")
      guard isFirst else { continue }
      lines.append(
        """
          <text class="soft" x="\(text(left - 8))" y="\(text(y + 4))" text-anchor="end" \
        font-size="12">\(Format.time(microseconds: pow(10, Double(exponent))))</text>
        """)
    }
    for exponent in counts.low...counts.high where (exponent - counts.low) % 2 == 0 || counts.high - counts.low < 4 {
      let x = left + place(count: pow(10, Double(exponent)))
      lines.append(
        """
          <text class="soft" x="\(text(x))" y="\(text(bottom + 18))" text-anchor="middle" \
        font-size="12">\(Format.grouped(Int(pow(10, Double(exponent)))))</text>
        """)
    }
    for way in Keeper.Way.allCases {
      let points = figures.counts.compactMap { count in
        figures.microseconds(action, way, count).map {
          "\(text(left + place(count: Double(count)))) \(text(place(time: $0)))"
        }
      }
      lines.append("  <path class=\"way \(way.rawValue)\" d=\"M\(points.joined(separator: " L"))\"/>")
    }
    return lines
  }

  private func legend(y: Double) -> [String] {
    Keeper.Way.allCases.enumerated().flatMap { index, way in
      let x = Self.left + Double(index) * 150
      return [
        "  <path class=\"way \(way.rawValue)\" d=\"M\(text(x)) \(text(y - 5)) H\(text(x + 26))\"/>",
        """
          <text class="text" x="\(text(x + 34))" \
        y="\(text(y))"\(way == .records ? " font-weight=\"600\"" : "")>\(way.title)</text>
        """,
      ]
    }
  }

  private func place(time: Double) -> Double {
    let share = (log10(time) - Double(times.low)) / Double(max(times.high - times.low, 1))
    return Self.top + (1 - share) * Self.plotHeight
  }

  private func place(count: Double) -> Double {
    (log10(count) - Double(counts.low)) / Double(max(counts.high - counts.low, 1)) * panelWidth
  }

  private static func exponent(_ value: Double, _ rule: FloatingPointRoundingRule) -> Int {
    Int(log10(max(value, 1e-3)).rounded(rule))
  }

  private func text(_ value: Double) -> String {
    let tenths = (value * 10).rounded() / 10
    return tenths == tenths.rounded() ? "\(Int(tenths))" : "\(tenths)"
  }
}
