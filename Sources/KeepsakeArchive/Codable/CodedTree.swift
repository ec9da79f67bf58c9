/// The bytes of a coded value, validated as a whole before anything is read. Described in docs/FORMAT.md, "Coded
/// value".
///
///     | varint count | keys, ascending | value |
///     value   | tag | content, depending on the tag |
///     array   | 15 | varint count | values |
///     object  | 16 | varint count | varint key, value | ...    keys ascending
///
/// Owns its bytes, because a decoder may outlive the call that created it. Costs 12 bytes of memory per value; a value
/// takes at least one byte in the archive.
final class CodedTree: Sendable {
  /// A value, in the order of the bytes: the contents of a list or object follow it.
  private struct Entry {
    /// The position of the value's tag.
    let start: UInt32
    /// For a field, the number of its key.
    let key: UInt32
    /// The first entry that isn't part of this one.
    var next: UInt32
  }

  /// Bytes of an entry, doubled because the array grows while entries are added.
  static let memoryPerValue = 24

  /// The number of values in the tree, at any depth.
  var count: Int { entries.count }

  /// The bytes of a nil, preceded by their length.
  static let empty: [UInt8] = [2 << 1 | 1, 0 << 1 | 1, CodedTag.null.rawValue]

  let bytes: [UInt8]
  let keys: [String]
  private let entries: [Entry]
  let limits: ArchiveLimits
  let depth: Int

  /// - Parameters:
  ///   - offset: The offset of the bytes in the archive, for messages.
  ///   - depth: The number of levels of the archive around the value.
  init(_ source: UnsafeRawBufferPointer, offset: Int, depth: Int, limits: ArchiveLimits) throws {
    guard UInt32(exactly: source.count) != nil else {
      throw ArchiveError(
        .limit,
        """
        A coded value takes \(source.count) bytes; its positions are numbers of 32 bits, so it must be smaller than 4 \
        GiB
        """,
        offset: offset)
    }
    bytes = [UInt8](source)
    self.limits = limits
    self.depth = depth
    do {
      var input = ByteCursor(bytes: source, offset: 0, end: source.count)
      keys = try Self.keys(&input, limits)
      entries = try Self.entries(&input, keys: keys.count, depth: depth, limits)
      guard input.offset == input.end else { throw input.damaged("A coded value has unused bytes at its end") }
    } catch var error as ArchiveError {
      error.offset = error.offset.map { $0 + offset }
      throw error
    }
  }

  private static func keys(_ input: inout ByteCursor, _ limits: ArchiveLimits) throws -> [String] {
    // Uses the limit for strings, not that for fields, because the keys of dictionaries are among them.
    let count = try input.count(limit: limits.stringBytes, "keys in a coded value")
    var keys: [String] = []
    for _ in 0..<count {
      let key = try input.string(limit: limits.stringBytes)
      if let last = keys.last, !last.utf8.lexicographicallyPrecedes(key.utf8) {
        throw input.damaged("The keys of a coded value aren't in ascending order")
      }
      keys.append(key)
    }
    return keys
  }

  /// A list or object whose contents are being validated.
  private struct Open {
    let entry: Int
    let isObject: Bool
    var left: Int
    var lastKey = -1
  }

  private static func entries(_ input: inout ByteCursor, keys: Int, depth: Int, _ limits: ArchiveLimits) throws
    -> [Entry]
  {
    var entries: [Entry] = []
    var open: [Open] = []
    repeat {
      var key = 0
      if let last = open.last {
        open[open.count - 1].left -= 1
        if last.isObject {
          guard let number = Int(exactly: try input.varint()), number > last.lastKey, number < keys else {
            throw input.damaged("The keys of a coded object aren't in ascending order")
          }
          open[open.count - 1].lastKey = number
          key = number
        }
      }
      guard entries.count < limits.codedValues else {
        throw ArchiveError(
          .limit, "A coded value contains more than \(limits.codedValues) values", offset: input.offset)
      }
      let start = input.offset
      guard let tag = CodedTag(rawValue: try input.byte()) else {
        throw input.damaged("A coded value has an unknown tag")
      }
      entries.append(
        Entry(
          start: UInt32(truncatingIfNeeded: start), key: UInt32(truncatingIfNeeded: key),
          next: UInt32(truncatingIfNeeded: entries.count + 1)))
      if tag == .array || tag == .object {
        // Needs no limit: each element takes at least one byte, and each field two.
        let count = try input.count(limit: .max, "elements")
        open.append(Open(entry: entries.count - 1, isObject: tag == .object, left: count))
        guard depth + open.count - 1 <= limits.depth else {
          throw ArchiveError(.limit, "Values are nested more than \(limits.depth) levels deep", offset: input.offset)
        }
      } else {
        try CodedLeaf.check(tag, &input, stringLimit: limits.stringBytes)
      }
      while let last = open.last, last.left == 0 {
        entries[last.entry].next = UInt32(truncatingIfNeeded: entries.count)
        open.removeLast()
      }
    } while !open.isEmpty
    return entries
  }

  // MARK: Reading

  /// Returns the tag and, for a list or object, the number of its elements.
  func head(_ entry: Int) throws -> (tag: CodedTag, count: Int) {
    try at(entry) { tag, input in (tag, tag == .array || tag == .object ? try input.count(limit: .max, "elements") : 0)
    }
  }

  /// Returns a value that contains no others; nil for a list or object.
  func leaf(_ entry: Int) throws -> CodedLeaf? {
    try at(entry) { tag, input in try CodedLeaf(tag, &input, stringLimit: limits.stringBytes) }
  }

  private func at<R>(_ entry: Int, _ body: (CodedTag, inout ByteCursor) throws -> R) throws -> R {
    try bytes.withUnsafeBytes { all in
      var input = ByteCursor(bytes: all, offset: Int(entries[entry].start), end: all.count)
      guard let tag = CodedTag(rawValue: try input.byte()) else {
        throw input.damaged("A coded value has an unknown tag")
      }
      return try body(tag, &input)
    }
  }

  /// Returns the entry that follows an entry and all its contents.
  func after(_ entry: Int) -> Int { Int(entries[entry].next) }

  /// Returns the fields of an object, by ascending key.
  func fields(of entry: Int, count: Int) -> [(key: Int, entry: Int)] {
    var fields: [(key: Int, entry: Int)] = []
    fields.reserveCapacity(count)
    var next = entry + 1
    for _ in 0..<count {
      fields.append((Int(entries[next].key), next))
      next = after(next)
    }
    return fields
  }

  /// Returns the whole tree for inspection, with objects as dictionaries. Goes through the entries backwards, so that a
  /// value's contents are ready before the value itself, without recursion.
  ///
  /// - Parameter isExact: Whether numbers that look alike are marked, as described at `ArchiveMark`.
  func archiveValue(isExact: Bool = false) throws -> ArchiveValue {
    var ready: [ArchiveValue] = []
    for entry in entries.indices.reversed() {
      if let leaf = try leaf(entry) {
        ready.append(isExact ? leaf.exactValue : leaf.value)
        continue
      }
      let (tag, count) = try head(entry)
      let inside = Array(ready.suffix(count).reversed())
      ready.removeLast(count)
      if tag == .array {
        ready.append(.array(inside))
      } else {
        ready.append(
          .dictionary(zip(fields(of: entry, count: count), inside).map { .init(key: .string(keys[$0.key]), value: $1) })
        )
      }
    }
    return ready.last ?? .none
  }
}
