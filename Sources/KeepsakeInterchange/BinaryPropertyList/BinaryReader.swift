import Foundation
import KeepsakeArchive

/// Reads a binary property list. Validates everything: each length is compared with the remaining bytes before memory
/// is allocated, each byte may be read only a few times, however many objects contain it, and lists are read with a
/// stack of its own instead of recursion.
///
/// Each object is read once and kept, so that a list with many references to it is a single array in memory.
struct BinaryReader {
  private let bytes: UnsafeRawBufferPointer
  private let trailer: BinaryTrailer
  private let limits: PropertyListLimits
  /// By the object's number.
  private var values: [PropertyList]
  private var states: [State]
  /// The number of values that each object counts as, as described at `PropertyListLimits.values`.
  private var weights: [Int]
  private var open: [OpenList] = []
  /// The number of bytes that may still be read.
  private var readings: Int

  private enum State: UInt8 { case unread, open, read }

  /// A list or dictionary that hasn't been read completely.
  private struct OpenList {
    let kind: BinaryFormat.Kind
    let object: Int
    /// The offset of its references.
    let start: Int
    let count: Int
    var next = 0
    var weight = 1
    var elements: [PropertyList] = []
    var entries: [PropertyList.Entry] = []
  }

  static func read(_ bytes: UnsafeRawBufferPointer, limits: PropertyListLimits) throws -> PropertyList {
    guard bytes.count <= limits.bytes else {
      throw PropertyListError(.limit, "The file has \(bytes.count) bytes; the limit is \(limits.bytes)")
    }
    let trailer = try BinaryTrailer(bytes)
    // Checked before memory is allocated for each of them.
    guard trailer.objectCount <= limits.values else {
      throw PropertyListError(.limit, "The file has \(trailer.objectCount) values; the limit is \(limits.values)")
    }
    var reader = BinaryReader(bytes, trailer, limits)
    return try reader.root()
  }

  private init(_ bytes: UnsafeRawBufferPointer, _ trailer: BinaryTrailer, _ limits: PropertyListLimits) {
    self.bytes = bytes
    self.trailer = trailer
    self.limits = limits
    values = Array(repeating: .null, count: trailer.objectCount)
    states = Array(repeating: .unread, count: trailer.objectCount)
    weights = Array(repeating: 1, count: trailer.objectCount)
    readings = bytes.count * PropertyListLimits.readings + PropertyListLimits.freeReadings
  }

  // MARK: Objects

  private mutating func root() throws -> PropertyList {
    if let list = try begin(trailer.root) { open.append(list) }
    while let last = open.indices.last { try fill(last) }
    return values[trailer.root]
  }

  /// Continues an open list until it is complete, or until one of its elements has to be read first.
  ///
  /// The list is modified in place: if it were taken out of `open`, an unoptimized build would copy its elements for
  /// each element that is a list.
  private mutating func fill(_ place: Int) throws {
    let (kind, start, count) = (open[place].kind, open[place].start, open[place].count)
    var next = open[place].next
    while next < count {
      let child = try reference(start + (kind == .dictionary ? count + next : next) * trailer.referenceBytes)
      switch states[child] {
      case .read: break
      case .open:
        throw PropertyListError(
          .cycle, "A list contains itself, which no program can save as a property list",
          offset: offset(open[place].object))
      case .unread:
        guard let inner = try begin(child) else { break }
        guard open.count < limits.depth else {
          throw PropertyListError(.limit, "Lists are nested more than \(limits.depth) deep", offset: offset(child))
        }
        open[place].next = next
        open.append(inner)
        return
      }
      open[place].weight += weights[child]
      guard open[place].weight <= limits.values else { throw tooMany(open[place].object) }
      if kind == .dictionary {
        let key = try key(start + next * trailer.referenceBytes)
        open[place].entries.append(.init(key, values[child]))
      } else {
        open[place].elements.append(values[child])
      }
      next += 1
    }
    let list = open.removeLast()
    switch kind {
    case .dictionary: values[list.object] = .dictionary(list.entries)
    case .set: values[list.object] = .set(list.elements)
    default: values[list.object] = .array(list.elements)
    }
    weights[list.object] = list.weight
    states[list.object] = .read
  }

  /// Returns the key that the reference at an offset leads to.
  private mutating func key(_ place: Int) throws -> String {
    let number = try reference(place)
    if states[number] == .unread, let other = try begin(number) { throw noText(other.object) }
    guard case .string(let key) = values[number] else { throw noText(number) }
    return key
  }

  private func noText(_ object: Int) -> PropertyListError {
    PropertyListError(
      .unsupported, "A key of a dictionary isn't a string: only strings can be keys", offset: offset(object))
  }

  private func tooMany(_ object: Int) -> PropertyListError {
    PropertyListError(
      .limit,
      "Lists that refer to each other many times amount to more than \(limits.values) values, which no program saves",
      offset: offset(object))
  }

  /// Reads an object. If it is a list, returns it open, with its elements still to be read; otherwise nil.
  private mutating func begin(_ object: Int) throws -> OpenList? {
    let start = offset(object)
    guard start < trailer.end else { throw passesEnd(start) }
    let marker = bytes[start]
    let low = marker & 0x0F
    var place = start + 1
    guard let kind = BinaryFormat.Kind(rawValue: marker >> 4) else { throw unknown(marker, at: start) }
    switch kind {
    case .simple:
      switch low {
      case 0: values[object] = .null
      case 8: values[object] = .bool(false)
      case 9: values[object] = .bool(true)
      default: throw unknown(marker, at: start)
      }
    case .integer: values[object] = .integer(try integer(&place, marker: marker, at: start))
    case .real:
      switch low {
      case 2: values[object] = .float(Float(bitPattern: UInt32(truncatingIfNeeded: try unsigned(&place, count: 4))))
      case 3: values[object] = .number(Double(bitPattern: UInt64(truncatingIfNeeded: try unsigned(&place, count: 8))))
      default: throw unknown(marker, at: start)
      }
    case .date:
      guard low == 3 else { throw unknown(marker, at: start) }
      let seconds = Double(bitPattern: UInt64(truncatingIfNeeded: try unsigned(&place, count: 8)))
      values[object] = .date(Date(timeIntervalSinceReferenceDate: seconds))
    case .uid:
      let value = try unsigned(&place, count: Int(low) + 1)
      guard let number = UInt64(exactly: value) else {
        throw PropertyListError(
          .unsupported, "A UID takes more than 64 bits: no archive has so many objects", offset: start)
      }
      values[object] = .uid(number)
    case .data:
      let count = try length(&place, low, width: 1, at: start)
      values[object] = .data(Data(UnsafeRawBufferPointer(rebasing: bytes[place..<place + count])))
      weights[object] += count / PropertyListLimits.bytesForValue
    case .ascii, .utf16:
      let count = try length(&place, low, width: kind == .ascii ? 1 : 2, at: start)
      let text = kind == .ascii ? ascii(place, count) : utf16(place, count)
      guard let text else {
        let kind = kind == .ascii ? "ASCII" : "UTF-16"
        throw PropertyListError(.damaged, "A string is marked as \(kind), but isn't valid \(kind)", offset: start)
      }
      values[object] = .string(text)
      weights[object] += count / PropertyListLimits.bytesForValue
    case .array, .set, .dictionary:
      let perElement = trailer.referenceBytes * (kind == .dictionary ? 2 : 1)
      let count = try length(&place, low, width: perElement, at: start)
      var list = OpenList(kind: kind, object: object, start: place, count: count)
      if kind == .dictionary { list.entries.reserveCapacity(count) } else { list.elements.reserveCapacity(count) }
      states[object] = .open
      return list
    }
    states[object] = .read
    return nil
  }

  // MARK: Bytes

  /// Returns the offset of an object. The table has been found to be inside the file.
  private func offset(_ object: Int) -> Int {
    let place = trailer.table + object * trailer.offsetBytes
    var value: UInt64 = 0
    for index in place..<place + trailer.offsetBytes { value = value << 8 | UInt64(bytes[index]) }
    return Int(clamping: value)
  }

  /// Returns the number of an object. `length` has checked that its bytes are there.
  private func reference(_ place: Int) throws -> Int {
    var value: UInt64
    switch trailer.referenceBytes {
    case 1: value = UInt64(bytes[place])
    case 2: value = UInt64(bytes[place]) << 8 | UInt64(bytes[place + 1])
    default:
      value = 0
      for index in place..<place + trailer.referenceBytes { value = value << 8 | UInt64(bytes[index]) }
    }
    guard value < UInt64(trailer.objectCount) else {
      throw PropertyListError(
        .damaged,
        """
        A reference points to object \(value), but the file has only \
        \(PrintableText.count(trailer.objectCount, "object")), numbered from 0: the file was altered
        """,
        offset: place)
    }
    return Int(value)
  }

  /// Reads an unsigned number of 1 to 16 bytes.
  private mutating func unsigned(_ place: inout Int, count: Int) throws -> UInt128 {
    guard count <= trailer.end - place else { throw passesEnd(place) }
    try spend(count, at: place)
    var value: UInt128 = 0
    if count <= 8 {
      var short: UInt64 = 0
      for index in place..<place + count { short = short << 8 | UInt64(bytes[index]) }
      value = UInt128(short)
    } else {
      for index in place..<place + count { value = value << 8 | UInt128(bytes[index]) }
    }
    place += count
    return value
  }

  private mutating func integer(_ place: inout Int, marker: UInt8, at start: Int) throws -> Int128 {
    let size = marker & 0x0F
    guard size <= 4 else { throw unknown(marker, at: start) }
    let value = try unsigned(&place, count: 1 << size)
    switch size {
    case 3: return Int128(Int64(truncatingIfNeeded: value))
    default: return Int128(truncatingIfNeeded: value)
    }
  }

  /// Reads the number of elements of `width` bytes that follow, and checks that all of them are inside the file.
  private mutating func length(_ place: inout Int, _ low: UInt8, width: Int, at start: Int) throws -> Int {
    var count = Int(low)
    if low == BinaryFormat.longCount {
      guard place < trailer.end else { throw passesEnd(place) }
      let marker = bytes[place]
      guard marker >> 4 == BinaryFormat.Kind.integer.rawValue else {
        throw PropertyListError(.damaged, "A count isn't an integer: the file was altered", offset: place)
      }
      place += 1
      count = Int(clamping: try integer(&place, marker: marker, at: place - 1))
    }
    guard count >= 0, count <= (trailer.end - place) / width else { throw passesEnd(start) }
    try spend(count * width, at: start)
    return count
  }

  private mutating func spend(_ count: Int, at place: Int) throws {
    readings -= count
    guard readings >= 0 else {
      throw PropertyListError(.damaged, "Objects overlap, which no program writes: the file was altered", offset: place)
    }
  }

  private func ascii(_ place: Int, _ count: Int) -> String? {
    let text = UnsafeRawBufferPointer(rebasing: bytes[place..<place + count])
    guard text.allSatisfy({ $0 < 0x80 }) else { return nil }
    return String(decoding: text, as: UTF8.self)
  }

  /// Implemented here, because the standard library's transcoding takes several times as long. Returns nil for an
  /// unpaired surrogate.
  private func utf16(_ place: Int, _ count: Int) -> String? {
    let end = place + 2 * count
    var isWhole = true
    let text = String(unsafeUninitializedCapacity: 3 * count) { output in
      var written = 0
      func put(_ byte: UInt32) {
        output[written] = UInt8(truncatingIfNeeded: byte)
        written += 1
      }
      var next = place
      while next < end {
        var scalar = unit(next)
        next += 2
        if scalar & 0xFC00 == 0xD800, next < end, unit(next) & 0xFC00 == 0xDC00 {
          scalar = 0x1_0000 + ((scalar & 0x3FF) << 10 | unit(next) & 0x3FF)
          next += 2
        } else if scalar & 0xF800 == 0xD800 {
          isWhole = false
          return 0
        }
        switch scalar {
        case ..<0x80: put(scalar)
        case ..<0x800:
          put(0xC0 | scalar >> 6)
          put(0x80 | scalar & 0x3F)
        case ..<0x1_0000:
          put(0xE0 | scalar >> 12)
          put(0x80 | scalar >> 6 & 0x3F)
          put(0x80 | scalar & 0x3F)
        default:
          put(0xF0 | scalar >> 18)
          put(0x80 | scalar >> 12 & 0x3F)
          put(0x80 | scalar >> 6 & 0x3F)
          put(0x80 | scalar & 0x3F)
        }
      }
      return written
    }
    return isWhole ? text : nil
  }

  private func unit(_ place: Int) -> UInt32 { UInt32(bytes[place]) << 8 | UInt32(bytes[place + 1]) }

  private func passesEnd(_ place: Int) -> PropertyListError {
    PropertyListError(.damaged, "A value extends past the end of the file, which was cut off or altered", offset: place)
  }

  private func unknown(_ marker: UInt8, at place: Int) -> PropertyListError {
    PropertyListError(
      .unsupported, "The marker 0x\(String(marker, radix: 16)) is not a known kind of value", offset: place)
  }
}
