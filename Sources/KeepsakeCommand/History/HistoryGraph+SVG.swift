#if Cloud
import KeepsakeReplication

// The graph as a picture, readable on light and dark pages.
extension HistoryGraph {
  private static let (rowHeight, columnWidth) = (26, 18)
  private static let (left, top, textWidth) = (20, 44, 720)
  private static let radius = 5
  /// One for each maker of versions, again from the first if there are more.
  private static let colors = ["#2a7ab9", "#c8352b", "#2a9d57", "#d98a1f", "#8a4fb5", "#10908f"]

  /// - Parameter title: What it is the history of.
  func svg(title: String) -> String {
    let columns = 1 + (rows.flatMap { [$0.column] + $0.joining + $0.forking + $0.passing }.max() ?? 0)
    let textX = Self.left + columns * Self.columnWidth + 10
    let (width, height) = (textX + Self.textWidth, Self.top + rows.count * Self.rowHeight + 10)
    var parts = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" font-family="monospace" font-size="13" \
      fill="#777">
      """,
      "<title>\(XMLText.escaped(title))</title>",
      "<text x=\"\(Self.left)\" y=\"22\" font-family=\"sans-serif\" font-size=\"15\">\(XMLText.escaped(title))</text>",
    ]
    parts += edges.map { edge in
      "<path d=\"\(Self.path(edge))\" fill=\"none\" stroke=\"#999\" stroke-width=\"1.5\"/>"
    }
    let makers = makers
    for (index, row) in rows.enumerated() {
      let (x, y) = (Self.x(row.column), Self.y(index))
      let color = Self.colors[(makers.firstIndex(of: row.version.maker) ?? 0) % Self.colors.count]
      switch row.version.kind {
      case .head: parts.append("<circle cx=\"\(x)\" cy=\"\(y)\" r=\"\(Self.radius)\" fill=\"\(color)\"/>")
      case .version:
        parts.append(
          "<circle cx=\"\(x)\" cy=\"\(y)\" r=\"\(Self.radius)\" fill=\"#fff\" stroke=\"\(color)\" stroke-width=\"2\"/>")
      case .delete:
        parts.append(
          """
          <path d="M\(x - 4) \(y - 4)l8 8m0 -8l-8 8" fill="none" stroke="\(color)" stroke-width="2"/>
          """)
      }
      parts.append(
        "<text x=\"\(textX)\" y=\"\(y + 4)\" xml:space=\"preserve\">\(XMLText.escaped(row.version.label))</text>")
    }
    return parts.joined(separator: "\n") + "\n</svg>\n"
  }

  /// A line from a version to one that it comes from.
  private struct Edge {
    var from: (row: Int, column: Int)
    var lane: Int
    var to: (row: Int, column: Int)
  }

  private var edges: [Edge] {
    var open: [Int: (row: Int, column: Int)] = [:]
    var edges: [Edge] = []
    for (index, row) in rows.enumerated() {
      for lane in [row.column] + row.joining {
        guard let start = open.removeValue(forKey: lane) else { continue }
        edges.append(Edge(from: start, lane: lane, to: (index, row.column)))
      }
      for lane in (row.continues ? [row.column] : []) + row.forking { open[lane] = (index, row.column) }
    }
    return edges
  }

  /// Leaves the upper version's column within one row, and reaches the lower one's within one.
  private static func path(_ edge: Edge) -> String {
    let (start, end) = ((x(edge.from.column), y(edge.from.row)), (x(edge.to.column), y(edge.to.row)))
    guard edge.lane != edge.from.column || edge.lane != edge.to.column else {
      return "M\(start.0) \(start.1)V\(end.1)"
    }
    let lane = x(edge.lane)
    let (upper, lower) = (min(start.1 + rowHeight / 2, end.1), max(end.1 - rowHeight / 2, start.1))
    return "M\(start.0) \(start.1)L\(lane) \(upper)V\(lower)L\(end.0) \(end.1)"
  }

  private static func x(_ column: Int) -> Int { left + column * columnWidth }
  private static func y(_ row: Int) -> Int { top + row * rowHeight }
}
#endif
