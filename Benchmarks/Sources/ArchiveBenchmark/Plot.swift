import BenchmarkKit
import Foundation
import GameWorlds

/// Bars on a logarithmic scale, as SVG without any dependency; readable on light and dark pages.
struct Plot {
  struct Bar {
    let name: String
    let microseconds: Double
    let isOurs: Bool
  }

  struct Panel {
    let title: String
    let bars: [Bar]
  }

  private static let width = 880.0
  private static let left = 190.0
  private static let right = 100.0
  private static let barHeight = 20.0
  private static let step = 27.0

  let title: String
  let panels: [Panel]

  init(_ figures: Figures) {
    title = "10,000 heroes with 40,000 items: time to encode and decode, shorter is better; logarithmic scale"
    panels = ["encode", "decode"].map { action in
      let rows = figures.measurements.filter { $0.group == DungeonGroup.name && $0.action == action }
      let bars = rows.map { Bar(name: $0.encoder, microseconds: $0.bestMicroseconds, isOurs: $0.encoder == "Keepsake") }
      return Panel(title: action, bars: bars.sorted { $0.microseconds < $1.microseconds })
    }
  }

  var svg: String {
    let times = panels.flatMap(\.bars).map(\.microseconds)
    let low = power(below: times.min() ?? 1)
    let high = power(above: times.max() ?? 10)
    let tops = panels.indices.map { index in
      62 + panels[..<index].reduce(0) { $0 + Double($1.bars.count) * Self.step + 62 }
    }
    let height = (tops.last ?? 0) + Double(panels.last?.bars.count ?? 0) * Self.step + 46
    var lines = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(text(Self.width)) \(text(height))" \
      font-family="system-ui, sans-serif" font-size="14">
      """,
      "  <title>\(title)</title>",
      "  <style>",
      """
          .card { fill: #fbfaf7 } .text { fill: #333 } .soft { fill: #6b6b6b } .line { stroke: #d8d3c6 } .bar { fill: \
      #a9b4ae } .ours { fill: #2f7d54 }
      """,
      "    .time { stroke: #fbfaf7; stroke-width: 4; paint-order: stroke }",
      "    @media (prefers-color-scheme: dark) {",
      """
            .card { fill: #1c1f1e } .text { fill: #e6e6e3 } .soft { fill: #a5a8a5 } .line { stroke: #3b403d } .bar { \
      fill: #5d6762 } .ours { fill: #58b984 }
      """,
      "      .time { stroke: #1c1f1e }",
      "    }",
      "  </style>",
      "  <rect class=\"card\" width=\"\(text(Self.width))\" height=\"\(text(height))\" rx=\"12\"/>",
    ]
    for (panel, top) in zip(panels, tops) { lines += draw(panel, top: top, low: low, high: high) }
    lines.append(
      """
        <text class="soft" x="\(text(Self.left))" y="\(text(height - 14))" font-size="12">Logarithmic scale: \
      each line is ten times the one before. 10,000 heroes with 40,000 items.</text>
      """)
    return (lines + ["</svg>"]).joined(separator: "\n") + "\n"
  }

  private func draw(_ panel: Panel, top: Double, low: Int, high: Int) -> [String] {
    let bottom = top + Double(panel.bars.count) * Self.step
    var lines = [
      """
        <text class="text" x="24" y="\(text(top - 30))" font-size="17" font-weight="600">\(panel.title)</text>
      """
    ]
    for exponent in low...high {
      let x = place(Self.decade(exponent), low, high)
      lines.append("  <path class=\"line\" d=\"M\(text(x)) \(text(top - 8)) V\(text(bottom))\"/>")
      lines.append(
        """
          <text class="soft" x="\(text(x))" y="\(text(top - 14))" text-anchor="middle" \
        font-size="12">\(Format.time(microseconds: Self.decade(exponent)))</text>
        """)
    }
    for (index, bar) in panel.bars.enumerated() {
      let y = top + Double(index) * Self.step
      let end = place(bar.microseconds, low, high)
      let weight = bar.isOurs ? " font-weight=\"600\"" : ""
      lines.append(
        """
          <text class="text" x="\(text(Self.left - 10))" y="\(text(y + 15))" \
        text-anchor="end"\(weight)>\(bar.name)</text>
        """)
      lines.append(
        """
          <rect class="\(bar.isOurs ? "ours" : "bar")" x="\(text(Self.left))" y="\(text(y))" \
        width="\(text(max(end - Self.left, 2)))" height="\(text(Self.barHeight))" rx="3"/>
        """)
      lines.append(
        """
          <text class="text time" x="\(text(end + 8))" \
        y="\(text(y + 15))"\(weight)>\(Format.time(microseconds: bar.microseconds))</text>
        """)
    }
    return lines
  }

  private func place(_ microseconds: Double, _ low: Int, _ high: Int) -> Double {
    let share = (Self.logarithm(microseconds) - Double(low)) / Double(max(high - low, 1))
    return Self.left + share * (Self.width - Self.left - Self.right)
  }

  /// What takes no time at all stands at the left edge of any scale.
  private static func logarithm(_ value: Double) -> Double { log10(max(value, 1e-3)) }
  private static func decade(_ exponent: Int) -> Double { pow(10, Double(exponent)) }
  private func power(below value: Double) -> Int { Int(Self.logarithm(value).rounded(.down)) }
  private func power(above value: Double) -> Int { Int(Self.logarithm(value).rounded(.up)) }

  private func text(_ value: Double) -> String {
    let tenths = (value * 10).rounded() / 10
    return tenths == tenths.rounded() ? "\(Int(tenths))" : "\(tenths)"
  }
}
