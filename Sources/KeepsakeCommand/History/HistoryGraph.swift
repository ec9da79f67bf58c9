#if Cloud
import Foundation
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeStore

/// The versions of a slot and which comes from which, newest first, laid out in columns: the lines of development that
/// exist at the same time stand side by side.
struct HistoryGraph {
  enum Kind: String {
    case head, version, delete

    var mark: Character {
      switch self {
      case .head: "●"
      case .version: "○"
      case .delete: "×"
      }
    }
  }

  /// A part of what is said of a version.
  struct Piece: Equatable {
    var text: String
    /// Nil for what isn't shown in a color.
    var role: TextRole?
    /// Whether it names the maker, and has its color.
    var isMaker = false
  }

  struct Version: Equatable {
    var id: VersionID
    /// The versions that are shown from which it directly comes.
    var parents: [VersionID]
    var kind: Kind
    /// Who made it: the device, if that is recorded, and otherwise the opening of a store. It has a color of its own.
    var maker: String
    /// What is said of it.
    var pieces: [Piece]

    var label: String { pieces.map(\.text).joined() }
  }

  /// A version's place. Columns count from 0.
  struct Row: Equatable {
    var version: Version
    var column: Int
    /// The columns, beside its own, in which newer versions lead to it.
    var joining: [Int]
    /// The columns, beside its own, in which lines to its parents begin.
    var forking: [Int]
    /// The columns in which lines pass it by.
    var passing: Set<Int>
    /// Whether a line goes on below it.
    var continues: Bool
  }

  private(set) var rows: [Row] = []

  /// - Parameter versions: Newest first, as far as their times are true; a version comes before those that it comes
  ///   from, whatever their order is.
  init(_ versions: [Version]) {
    // For each column, the version to which its line leads.
    var lines: [VersionID?] = []
    for version in Self.ordered(versions) {
      let found = lines.indices.filter { lines[$0] == version.id }
      let column = found.first ?? Self.free(in: &lines, from: 0)
      for index in found { lines[index] = nil }
      let passing = Set(lines.indices.filter { lines[$0] != nil })
      var forking: [Int] = []
      for (number, parent) in version.parents.enumerated() {
        let place = number == 0 ? column : Self.free(in: &lines, from: column + 1)
        lines[place] = parent
        if number > 0 { forking.append(place) }
      }
      rows.append(
        Row(
          version: version, column: column, joining: Array(found.dropFirst()), forking: forking, passing: passing,
          continues: !version.parents.isEmpty))
      while let last = lines.last, last == nil { lines.removeLast() }
    }
  }

  private static func free(in lines: inout [VersionID?], from first: Int) -> Int {
    while lines.count <= first { lines.append(nil) }
    if let free = lines.indices.dropFirst(first).first(where: { lines[$0] == nil }) { return free }
    lines.append(nil)
    return lines.count - 1
  }

  /// Puts versions before those that they come from. Versions that a damaged store lets come from each other come last.
  private static func ordered(_ versions: [Version]) -> [Version] {
    let places = Dictionary(versions.enumerated().map { ($1.id, $0) }) { first, _ in first }
    var newer = [Int](repeating: 0, count: versions.count)
    for version in versions { for parent in version.parents { if let place = places[parent] { newer[place] += 1 } } }
    var ready = versions.indices.filter { newer[$0] == 0 }
    var result: [Version] = []
    var taken = Set<Int>()
    while let next = ready.min() {
      ready.removeAll { $0 == next }
      taken.insert(next)
      result.append(versions[next])
      for parent in versions[next].parents {
        guard let place = places[parent] else { continue }
        newer[place] -= 1
        if newer[place] == 0 { ready.append(place) }
      }
    }
    return result + versions.indices.filter { !taken.contains($0) }.map { versions[$0] }
  }
}

// MARK: Text

extension HistoryGraph {
  /// The makers of the versions, each once; the place of one says which color it has.
  var makers: [String] { rows.map(\.version.maker).reduce(into: []) { if !$0.contains($1) { $0.append($1) } } }

  /// The lines without colors.
  var lines: [String] { lines(on: .plain) }

  /// Returns a line for each version, and one wherever lines meet or part. Each is cut off where the terminal ends.
  func lines(on terminal: Terminal) -> [String] {
    let colors = Dictionary(uniqueKeysWithValues: makers.enumerated().map { ($1, $0) })
    return rows.flatMap { row -> [String] in
      let color = TextRole.line(colors[row.version.maker] ?? 0)
      let last = ([row.column] + row.passing).max() ?? 0
      var node = (0...last).map { column in
        column == row.column
          ? terminal.paint(String(row.version.kind.mark), color) : row.passing.contains(column) ? "│" : " "
      }.joined(separator: " ")
      node += "  "
      var room = terminal.width.map { max($0 - 2 * last - 3, 1) } ?? .max
      for piece in row.version.pieces where room > 0 {
        let text = Terminal.cut(piece.text, to: room)
        let role = piece.isMaker ? color : piece.role
        node += role.map { terminal.paint(text, $0) } ?? text
        room = text == piece.text ? room - Terminal.columns(of: text) : 0
      }
      return [
        row.joining.isEmpty ? nil : Self.meeting(row, row.joining, last: "╯", other: "┴", continues: true), node,
        row.forking.isEmpty ? nil : Self.meeting(row, row.forking, last: "╮", other: "┬", continues: row.continues),
      ].compactMap(\.self)
    }
  }

  /// The line between versions in which others reach a version's column, or leave it.
  private static func meeting(_ row: Row, _ others: [Int], last: Character, other: Character, continues: Bool) -> String
  {
    let end = others.max() ?? row.column
    var text = ""
    for column in 0...max(end, row.passing.max() ?? 0) {
      let isBetween = row.column < column && column < end
      let passes = row.passing.contains(column)
      if column == row.column {
        text.append("├")
      } else if others.contains(column) {
        text.append(column == end ? last : other)
      } else {
        text.append(passes ? (isBetween ? "┼" : "│") : (isBetween ? "─" : " "))
      }
      text.append(row.column <= column && column < end ? "─" : " ")
    }
    return String(text.reversed().drop { $0 == " " }.reversed())
  }
}

// MARK: Reading

extension HistoryGraph {
  /// Digits of an id that tell the versions of a slot apart, and that commands take.
  private static let idDigits = 8

  /// Reads the versions of a slot that are kept, with those of its heads that are only in the cloud.
  ///
  /// - Parameter key: The slot key in the store.
  init(of key: String, in transaction: StoreTransaction) throws {
    let report = try SlotReport(key, in: transaction)
    let shown = Set(report.versions.compactMap { VersionID($0.id) })
    var records: [VersionID: VersionRecord?] = [:]
    func record(_ id: VersionID) throws -> VersionRecord? {
      if let known = records[id] { return known }
      let found = try transaction.version(id)?.record
      records[id] = .some(found)
      return found
    }
    var versions: [Version] = []
    let makers = Dictionary(report.versions.map { ($0.id, Self.maker(of: $0)) }) { first, _ in first }
    let width = makers.values.map(Terminal.columns(of:)).max() ?? 0
    for version in report.versions {
      guard let id = VersionID(version.id), let own = try record(id) else { continue }
      let parents = try Self.parents(of: own, shown, record)
      versions.append(
        Version(
          id: id, parents: parents, kind: version.tombstone ? .delete : version.head ? .head : .version,
          maker: makers[version.id] ?? "",
          pieces: try Self.pieces(
            version, own, isWinner: version.id == report.heads.first, width, parents, shown, record)))
    }
    self.init(versions)
  }

  /// Returns the nearest versions that are shown and that a version comes from, without those that others of them come
  /// from.
  private static func parents(
    of record: VersionRecord, _ shown: Set<VersionID>, _ read: (VersionID) throws -> VersionRecord?
  ) throws -> [VersionID] {
    var nearest: [VersionID] = []
    var (met, open) = (Set(record.covers), record.covers)
    while let id = open.popLast() {
      if shown.contains(id) {
        nearest.append(id)
      } else {
        open += try read(id)?.covers.filter { met.insert($0).inserted } ?? []
      }
    }
    guard nearest.count > 1 else { return nearest }
    // What comes further back: the versions behind each of them.
    var behind: Set<VersionID> = []
    open = try nearest.flatMap { try read($0)?.covers ?? [] }
    while let id = open.popLast() {
      if behind.insert(id).inserted { open += try read(id)?.covers ?? [] }
    }
    return nearest.filter { !behind.contains($0) }.sorted()
  }

  /// The most columns of a device's name.
  private static let longestMaker = 16
  /// Digits of a writer that tell the openings of a store apart.
  private static let writerDigits = 4

  private static func maker(of version: VersionReport) -> String {
    version.device.map { Terminal.cut(Printable.text($0), to: longestMaker) }
      ?? String(version.writer.prefix(writerDigits))
  }

  /// Returns the version that a version restores; nil if it restores none.
  ///
  /// A restore has the contents of an older version. Those of the one before it and the same metadata have only a
  /// restore of the version that was current already: a save that changes nothing makes no version.
  private static func origin(
    of record: VersionRecord, _ parents: [VersionID], _ shown: Set<VersionID>,
    _ read: (VersionID) throws -> VersionRecord?
  ) throws -> VersionID? {
    guard !record.tombstone else { return nil }
    let same = try parents.compactMap(read).filter { $0.contents == record.contents && !$0.tombstone }
    guard same.isEmpty else {
      return parents.count == 1 && same[0].metadata.withoutDevice == record.metadata.withoutDevice ? parents[0] : nil
    }
    return try shown.sorted().first { other in
      guard other != record.id, let before = try read(other) else { return false }
      return before.contents == record.contents && before.savedAtMilliseconds < record.savedAtMilliseconds
    }
  }

  /// - Parameter width: How many columns the names of makers take.
  private static func pieces(
    _ version: VersionReport, _ record: VersionRecord, isWinner: Bool, _ width: Int, _ parents: [VersionID],
    _ shown: Set<VersionID>, _ read: (VersionID) throws -> VersionRecord?
  ) throws -> [Piece] {
    var marks: [String] = []
    if version.head { marks.append(isWinner ? "current" : "head") }
    if parents.count > 1 { marks.append("merge") }
    if version.tombstone { marks.append("deleted") }
    if version.pinned { marks.append("pinned") }
    if !version.downloaded && !version.tombstone { marks.append("not downloaded") }
    if parents.isEmpty && !record.covers.isEmpty { marks.append("what it comes from isn't kept") }
    if let older = try origin(of: record, parents, shown, read) {
      marks.append("restored from \(older.description.prefix(idDigits))")
    }
    let title = version.title.map { "  \"\(Printable.text($0))\"" } ?? ""
    let mark = marks.isEmpty ? "" : "  [\(marks.joined(separator: ", "))]"
    let maker = maker(of: version)
    let space = String(repeating: " ", count: max(width - Terminal.columns(of: maker), 0))
    return [
      Piece(text: String(version.id.prefix(idDigits))),
      Piece(text: "  \(version.savedAt)  ", role: .faint),
      Piece(text: maker, isMaker: true), Piece(text: "\(space)  \(Printable.size(Int64(version.bytes)))\(title)"),
      Piece(text: mark, role: version.tombstone ? .removed : version.head ? .good : .faint),
    ]
  }
}

extension SaveMetadata {
  /// All but the name of the device: a restore on another one records that one's.
  fileprivate var withoutDevice: SaveMetadata {
    var metadata = self
    metadata.device = nil
    return metadata
  }
}
#endif
