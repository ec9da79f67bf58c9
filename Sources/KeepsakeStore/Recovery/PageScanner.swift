import Foundation
import GRDB

/// Finds rows in the pages of a database that SQLite can't read, and in those of its write-ahead log.
///
/// Parses SQLite's documented file format itself: leaf pages of tables, and all pages of tables without rowid, whose
/// inner pages hold rows too. If a page's own directory is inconsistent, every offset in the page is tried. A result
/// may be stale or not a row at all; the caller verifies each by its checksum or hash. Trusts no byte: every offset is
/// checked before it is read, and the length of every chain is bounded by the file's size.
///
/// The formats (n: variable-length number, 1 to 9 bytes):
///
///     leaf of a table     n payload size, n rowid, payload, [4 bytes: first overflow page]
///     leaf without rowid  n payload size, payload, [4 bytes: first overflow page]
///     payload             n size of header, n serial type of each column, then the columns
///     overflow page       4 bytes: next, 0 at the end; the rest is payload
struct PageScanner {
  /// The page size of stores that this release creates.
  static let pageSize = 4_096
  private static let headerOfFile = 100

  private let shapes: [TableShape]
  private let file: RawFile?
  private let log: WriteAheadLog
  private let pageSize: Int
  /// The frame in the log that contains the newest image of a page.
  private var newest: [Int: Int] = [:]
  private let pageCount: Int
  /// A row can't be longer than everything there is to read.
  private let maximumPayload: Int

  init(database: RawFile?, log: WriteAheadLog, shapes: [TableShape]) {
    self.shapes = shapes
    file = database
    self.log = log
    pageSize = log.frames.isEmpty ? Self.pageSize(of: database) : log.pageSize
    for (frame, page) in log.frames.enumerated() where page > 0 { newest[page] = frame }
    let inFile = (database?.size ?? 0) / pageSize
    pageCount = max(inFile, newest.keys.max() ?? 0)
    maximumPayload = (inFile + log.frames.count) * pageSize
  }

  /// Returns the page size in the header if it is a possible one, otherwise the default.
  static func pageSize(of file: RawFile?) -> Int {
    guard let header = file?.bytes(at: 16, count: 2) else { return pageSize }
    let stated = header.half(at: 0) == 1 ? 65_536 : header.half(at: 0)
    return stated >= 512 && stated & (stated - 1) == 0 ? stated : pageSize
  }

  /// The state of a scan.
  private struct Walk {
    /// Pages that are part of overflow chains.
    var chains: Set<Int> = []
    /// How many bytes of overflow pages may still be read. Each page belongs to one row, but forged rows could all
    /// claim the whole file.
    var bytesLeft: Int
    /// Rows with overflow pages that were already read: the log may contain many images of the page on which such a row
    /// begins.
    var long: Set<Int> = []
  }
  private static let readsOfEachPage = 16

  /// Passes every row that can be recognized to `each`, those of the newest pages first.
  func scan(_ each: (SalvagedRow) throws -> Void) throws {
    var walk = Walk(bytesLeft: maximumPayload.multipliedReportingOverflow(by: Self.readsOfEachPage).partialValue)
    /// Frames of the log, then pages of the file.
    var doubtful: [(frame: Int?, number: Int)] = []
    func image(_ frame: Int?, _ number: Int) -> [UInt8]? {
      frame.map { log.page(inFrame: $0) } ?? file?.bytes(at: (number - 1) * pageSize, count: pageSize)
    }
    func look(_ frame: Int?, _ number: Int) throws {
      let image = image(frame, number)
      guard let image, image.contains(where: { $0 != 0 }) else { return }
      guard let cells = cells(of: image, number) else {
        // Large stores consist mostly of overflow pages, which have no directory either. Such pages are scanned once
        // the overflow pages are known, and read again then.
        doubtful.append((frame, number))
        return
      }
      for cell in cells {
        for row in rows(in: image, at: cell.offset, hasRowid: cell.hasRowid, &walk) { try each(row) }
      }
    }
    for (frame, number) in log.frames.enumerated().reversed() where number > 0 {
      try look(frame, number)
    }
    for number in stride(from: 1, through: (file?.size ?? 0) / pageSize, by: 1) {
      try look(nil, number)
    }
    var pagesLeft = Self.maximumDoubtfulBytes / pageSize
    for (frame, number) in doubtful where !walk.chains.contains(number) {
      guard pagesLeft > 0, let image = image(frame, number) else { continue }
      pagesLeft -= 1
      for offset in 0..<(pageSize - 4) {
        // A payload size of 0 or 1 is no row; most bytes of unused space are 0.
        guard image[offset] > 1 else { continue }
        for hasRowid in [true, false] {
          for row in rows(in: image, at: offset, hasRowid: hasRowid, &walk) { try each(row) }
        }
      }
    }
  }

  /// Bounds the time of a scan: every offset in these is tried.
  private static let maximumDoubtfulBytes = 256 << 20

  // MARK: Pages

  /// Returns where a page's rows begin, according to its own directory; nil if the directory is inconsistent. Inner
  /// pages of tables with rowid have none.
  private func cells(of image: [UInt8], _ number: Int) -> [(offset: Int, hasRowid: Bool)]? {
    let start = number == 1 ? Self.headerOfFile : 0
    guard image.count >= start + 12 else { return nil }
    let type = image[start]
    guard type == 0x0D || type == 0x0A || type == 0x02 || type == 0x05 else { return nil }
    let isInner = type == 0x02 || type == 0x05
    let count = image.half(at: start + 3)
    let directory = start + (isInner ? 12 : 8)
    guard directory + count * 2 <= image.count else { return nil }
    let content = image.half(at: start + 5) == 0 ? 65_536 : image.half(at: start + 5)
    guard content >= directory + count * 2, content <= image.count else { return nil }
    var cells: [(Int, Bool)] = []
    for index in 0..<count {
      let offset = image.half(at: directory + index * 2)
      guard offset >= content, offset + 4 <= image.count else { return nil }
      // The rows of a leaf that isn't from a salvaged table, such as an index or the schema, fit no shape.
      cells.append((isInner ? offset + 4 : offset, type == 0x0D))
    }
    return type == 0x05 ? [] : cells
  }

  private func page(_ number: Int) -> [UInt8]? {
    guard number > 0, number <= pageCount else { return nil }
    if let frame = newest[number] { return log.page(inFrame: frame) }
    return file?.bytes(at: (number - 1) * pageSize, count: pageSize)
  }

  // MARK: Rows

  /// Returns the rows that may begin at this offset: one, or one for each of several tables with the same shape. The
  /// checksum decides which it is.
  private func rows(in image: [UInt8], at start: Int, hasRowid: Bool, _ walk: inout Walk) -> [SalvagedRow] {
    var offset = start
    guard let payload = number(in: image, &offset), payload > 1, payload <= maximumPayload else { return [] }
    var rowid: Int64?
    if hasRowid {
      guard let number = number(in: image, &offset) else { return [] }
      rowid = Int64(bitPattern: number)
    }
    let size = Int(payload)
    let local = localSize(of: size, hasRowid: hasRowid)
    guard offset + local + (local < size ? 4 : 0) <= image.count,
      let (shapes, serials, header) = header(in: image, at: offset, local: local, size: size, hasRowid: hasRowid)
    else { return [] }
    var bytes = Array(image[offset..<(offset + local)])
    if local < size {
      guard walk.long.insert([Int(image.word(at: offset + local)), size, bytes.hashValue].hashValue).inserted,
        overflow(from: Int(image.word(at: offset + local)), into: &bytes, size, &walk)
      else { return [] }
    }
    return shapes.map { SalvagedRow(table: $0.name, values: values(of: bytes, header, serials, $0, rowid)) }
  }

  /// Returns how many bytes of a payload are in the page itself.
  private func localSize(of size: Int, hasRowid: Bool) -> Int {
    let most = hasRowid ? pageSize - 35 : (pageSize - 12) * 64 / 255 - 23
    guard size > most else { return size }
    let least = (pageSize - 12) * 32 / 255 - 23
    let fitting = least + (size - least) % (pageSize - 4)
    return fitting <= most ? fitting : least
  }

  private func header(
    in image: [UInt8], at start: Int, local: Int, size: Int, hasRowid: Bool
  ) -> ([TableShape], [UInt64], Int)? {
    var offset = start
    guard let length = number(in: image, &offset), length > 1, length <= UInt64(local), length < 64 else { return nil }
    let end = start + Int(length)
    var serials: [UInt64] = []
    var total = Int(length)
    while offset < end {
      guard let serial = number(in: image, &offset), let bytes = Self.size(of: serial) else { return nil }
      let (sum, overflows) = total.addingReportingOverflow(bytes)
      guard !overflows, sum <= size else { return nil }
      total = sum
      serials.append(serial)
    }
    guard offset == end, total == size else { return nil }
    let fitting = shapes.filter { $0.hasRowid == hasRowid && $0.fits(serials) }
    return fitting.isEmpty ? nil : (fitting, serials, Int(length))
  }

  /// Appends what is on overflow pages. Returns false for a chain that ends early, leaves the file or takes more bytes
  /// than a scan may read.
  private func overflow(from first: Int, into bytes: inout [UInt8], _ size: Int, _ walk: inout Walk) -> Bool {
    var next = first
    var passed: [Int] = []
    while bytes.count < size {
      guard walk.bytesLeft >= pageSize, let page = page(next) else { return false }
      walk.bytesLeft -= pageSize
      passed.append(next)
      bytes += page[4..<min(pageSize, 4 + size - bytes.count)]
      next = Int(page.word(at: 0))
    }
    walk.chains.formUnion(passed)
    return true
  }

  private func values(
    of bytes: [UInt8], _ header: Int, _ serials: [UInt64], _ shape: TableShape, _ rowid: Int64?
  ) -> [String: DatabaseValue] {
    var values: [String: DatabaseValue] = [:]
    var offset = header
    for (index, serial) in serials.enumerated() {
      let name = shape.columns[index].name
      let count = Self.size(of: serial) ?? 0
      let part = bytes[offset..<(offset + count)]
      offset += count
      switch serial {
      case 0: values[name] = index == shape.rowidColumn ? (rowid?.databaseValue ?? .null) : .null
      case 1...6:
        var number: Int64 = part.first.map { $0 >= 0x80 } == true ? -1 : 0
        for byte in part { number = number << 8 | Int64(byte) }
        values[name] = number.databaseValue
      case 8: values[name] = 0.databaseValue
      case 9: values[name] = 1.databaseValue
      default:
        // Text that isn't valid UTF-8 is altered by this, and then no checksum fits.
        values[name] = serial & 1 == 0 ? Data(part).databaseValue : String(decoding: part, as: UTF8.self).databaseValue
      }
    }
    return values
  }

  /// Returns the length of a column with this serial type; nil for types that no row of a store has.
  private static func size(of serial: UInt64) -> Int? {
    switch serial {
    case 0, 8, 9: 0
    case 1...4: Int(serial)
    case 5: 6
    case 6: 8
    case 12...(1 << 32): Int((serial - 12) / 2)
    default: nil
    }
  }

  /// Reads SQLite's variable-length number.
  private func number(in image: [UInt8], _ offset: inout Int) -> UInt64? {
    var result: UInt64 = 0
    for index in 0..<9 {
      guard offset < image.count else { return nil }
      let byte = image[offset]
      offset += 1
      if index == 8 { return result << 8 | UInt64(byte) }
      result = result << 7 | UInt64(byte & 0x7F)
      if byte & 0x80 == 0 { return result }
    }
    return nil
  }
}
