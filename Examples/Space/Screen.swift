/// A frame in Unicode's Braille characters: two by four dots per character, with one of 256 colours for each.
struct Screen {
  private struct Cell: Equatable {
    var dots: UInt8 = 0
    var color: UInt8 = 0
    var letter: Character?

    var character: Character {
      // The characters from U+2800 on correspond to all values of a byte.
      letter ?? (dots == 0 ? " " : Character(Unicode.Scalar(0x2800 + UInt32(dots)) ?? " "))
    }
  }

  private static let textColor: UInt8 = 244
  let columns: Int
  let rows: Int
  private var cells: [Cell]

  init(columns: Int, rows: Int) {
    (self.columns, self.rows) = (columns, rows)
    cells = Array(repeating: Cell(), count: columns * rows)
  }

  var width: Int { columns * 2 }
  var height: Int { rows * 4 }

  /// Draws a dot. What is beyond an edge appears at the opposite edge.
  mutating func dot(_ point: SIMD2<Double>, _ color: UInt8) {
    let x = (Int(point.x.rounded(.down)) % width + width) % width
    let y = (Int(point.y.rounded(.down)) % height + height) % height
    // The dots of a character are numbered by column, except for the lowest row, which was added later.
    let bits: [[UInt8]] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]]
    cells[y / 4 * columns + x / 2].dots |= bits[y % 4][x % 2]
    cells[y / 4 * columns + x / 2].color = color
  }

  mutating func line(_ start: SIMD2<Double>, _ end: SIMD2<Double>, _ color: UInt8) {
    let way = end - start
    let count = Int(max(abs(way.x), abs(way.y)).rounded(.up))
    for step in 0...max(count, 1) { dot(start + way * (Double(step) / Double(max(count, 1))), color) }
  }

  /// Writes text in the last row. Control characters are omitted, because an error may contain a file name with some.
  mutating func text(_ text: String) {
    for (column, letter) in text.prefix(columns).enumerated() where letter.isASCII && letter > " " && letter != "\u{7F}"
    {
      cells[(rows - 1) * columns + column] = Cell(color: Self.textColor, letter: letter)
    }
  }

  /// Returns what has to be sent to a terminal that shows `previous`: only the differences, as one synchronized update,
  /// so that nothing flickers.
  func update(from previous: Screen?) -> String {
    var text = ""
    var old: [Cell]?
    if let previous, previous.columns == columns, previous.rows == rows {
      old = previous.cells
    } else {
      text = "\u{1B}[2J"
    }
    var color: UInt8?
    for row in 0..<rows {
      var isNext = false
      for column in 0..<columns {
        let cell = cells[row * columns + column]
        guard cell != (old?[row * columns + column] ?? Cell()) else {
          isNext = false
          continue
        }
        if !isNext { text += "\u{1B}[\(row + 1);\(column + 1)H" }
        if color != cell.color { text += "\u{1B}[38;5;\(cell.color)m" }
        (color, isNext) = (cell.color, true)
        text.append(cell.character)
      }
    }
    return text.isEmpty ? "" : "\u{1B}[?2026h\(text)\u{1B}[0m\u{1B}[?2026l"
  }
}
