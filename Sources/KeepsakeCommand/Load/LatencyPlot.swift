#if Cloud
import Foundation

/// The latencies of a load over time as SVG, without any dependency; readable on light and dark pages.
struct LatencyPlot {
  private struct Line {
    var name: String
    var color: String
    /// Milliseconds in each interval; nil where nothing was done.
    var values: [Double?]
  }
  private static let (width, height) = (880.0, 420.0)
  private static let (left, right, top, bottom) = (70.0, 70.0, 50.0, 45.0)
  /// More points than this can't be told apart.
  private static let maximumIntervals = 200

  private let title: String
  private let seconds: Double
  private let lines: [Line]

  /// - Parameter seconds: How long the load took.
  init(_ record: LoadRecord, title: String, seconds: Double) {
    (self.title, self.seconds) = (title, seconds)
    let count = max(1, min(Self.maximumIntervals, Int(seconds.rounded(.up)) * 2))
    var intervals = [[Double]](repeating: [], count: count)
    for sample in record.samples where [.save, .empty].contains(sample.action) {
      intervals[max(0, min(count - 1, Int(sample.second / seconds * Double(count))))].append(sample.milliseconds)
    }
    let latencies = intervals.map { Latencies($0) }
    lines = [
      Line(name: "50 %", color: "#2a9d57", values: latencies.map { $0?.p50 }),
      Line(name: "90 %", color: "#d98a1f", values: latencies.map { $0?.p90 }),
      Line(name: "99 %", color: "#c8352b", values: latencies.map { $0?.p99 }),
    ]
  }

  var svg: String {
    let values = lines.flatMap(\.values).compactMap { $0 }.filter { $0 > 0 }
    let low = floor(log10(values.min() ?? 1))
    let high = max(low + 1, ceil(log10(values.max() ?? 10)))
    func x(_ share: Double) -> Double { Self.left + share * (Self.width - Self.left - Self.right) }
    func y(_ milliseconds: Double) -> Double {
      let share = (log10(max(milliseconds, pow(10, low))) - low) / (high - low)
      return Self.height - Self.bottom - share * (Self.height - Self.top - Self.bottom)
    }
    var parts = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.text(Self.width)) \(Self.text(Self.height))" \
      font-family="sans-serif" font-size="13" fill="#777">
      """,
      "<title>\(XMLText.escaped(title))</title>",
      "<text x=\"\(Self.text(Self.left))\" y=\"24\" font-size=\"15\">\(XMLText.escaped(title))</text>",
    ]
    for power in Int(low)...Int(high) {
      let place = y(pow(10, Double(power)))
      parts.append(
        """
        <path d="M\(Self.text(Self.left)) \(Self.text(place))H\(Self.text(Self.width - Self.right))" \
        stroke="#999" stroke-opacity="0.35"/>\
        <text x="\(Self.text(Self.left - 8))" y="\(Self.text(place + 4))" text-anchor="end">\
        \(Self.text(pow(10, Double(power)))) ms</text>
        """)
    }
    for step in 0...4 {
      let share = Double(step) / 4
      parts.append(
        """
        <text x="\(Self.text(x(share)))" y="\(Self.text(Self.height - 18))" text-anchor="middle">\
        \(Self.text(share * seconds)) s</text>
        """)
    }
    for line in lines {
      let count = Double(line.values.count)
      let points = line.values.enumerated().compactMap { index, value in
        value.map { "\(Self.text(x((Double(index) + 0.5) / count))),\(Self.text(y($0)))" }
      }
      guard let last = points.last?.split(separator: ",") else { continue }
      parts.append(
        """
        <polyline points="\(points.joined(separator: " "))" fill="none" stroke="\(line.color)" stroke-width="2"/>\
        <text x="\(Self.text(Self.width - Self.right + 8))" y="\(last[1])" fill="\(line.color)">\
        \(XMLText.escaped(line.name))</text>
        """)
    }
    return (parts + ["</svg>", ""]).joined(separator: "\n")
  }

  private static func text(_ number: Double) -> String {
    let rounded = (number * 100).rounded() / 100
    return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
  }
}
#endif
