/// The bytes of a coded value, looked through as a whole before anything is read from them: see docs/FORMAT.md, "Coded value".
///
///     | varint count | keys, ascending | value |
///     value   | tag | what the tag says |
///     array   | 15 | varint count | values |
///     object  | 16 | varint count | varint key, value | ...    keys ascending
///
/// Owns its bytes, since a decoder may outlive the call that made it. Costs 12 bytes of memory for each value, and a value takes at least a byte.
final class CodedTree: Sendable {
  /// A value, in the order in which the tree is written: what is inside a list or object follows it.
  private struct Entry {
    /// Where its tag stands.
    let start: UInt32
    /// Of a field: the number of its key.
    let key: UInt32
    /// The first entry that isn't inside this one.
    var next: UInt32
  }

  /// An entry, and twice that while entries are added.
  static let memoryPerValue = 24

  /// Values in it, however deep.
  var count: Int { entries.count }

  /// The bytes of a nil with their length before them.
  static let empty: [UInt8] = [2 << 1 | 1, 0 << 1 | 1, CodedTag.null.rawValue]

  let bytes: [UInt8]
  let keys: [String]
  private let entries: [Entry]
  let limits: ArchiveLimits
  let depth: Int

  /// - Parameters:
  ///   - offset: Where the bytes stand in the archive, for messages.
  ///   - depth: Levels of the archive around the value.
  init(_ source: UnsafeRawBufferPointer, offset: Int, depth: Int, limits: ArchiveLimits) throws {
    guard UInt32(exactly: source.count) != nil else {
      throw ArchiveError(.limit, "A coded value takes \(source.count) bytes; positions in it have 32 bits", offset: offset)
    }
    bytes = [UInt8](source)
    self.limits = limits
    self.depth = depth
    do {
      var input = ByteCursor(bytes: source, offset: 0, end: source.count)
      keys = try Self.keys(&input, limits)
      entries = try Self.entries(&input, keys: keys.count, depth: depth, limits)
      guard input.offset == input.end else { throw input.damaged("A coded value has bytes that belong to nothing") }
    } catch var error as ArchiveError {
      error.offset = error.offset.map { $0 + offset }
      throw error
    }
  }

  private static func keys(_ input: inout ByteCursor, _ limits: ArchiveLimits) throws -> [String] {
    // The limit on strings, not on fields: a dictionary's keys are among them.
    let count = try input.count(limit: limits.stringBytes, "keys in a coded value")
    var keys: [String] = []
    for _ in 0..<count {
      let key = try input.string(limit: limits.stringBytes)
      if let last = keys.last, !last.utf8.lexicographicallyPrecedes(key.utf8) {
        throw input.damaged("The keys of a coded value don't ascend")
      }
      keys.append(key)
    }
    return keys
  }

  /// Lists and objects that are open while the bytes are looked through.
  private struct Open {
    let entry: Int
    let isObject: Bool
    var left: Int
    var lastKey = -1
  }

  private static func entries(_ input: inout ByteCursor, keys: Int, depth: Int, _ limits: ArchiveLimits) throws -> [Entry] {
    var entries: [Entry] = []
    var open: [Open] = []
    repeat {
      var key = 0
      if let last = open.last {
        open[open.count - 1].left -= 1
        if last.isObject {
          guard let number = Int(exactly: try input.varint()), number > last.lastKey, number < keys else {
            throw input.damaged("The keys of a coded object don't ascend")
          }
          open[open.count - 1].lastKey = number
          key = number
        }
      }
      guard entries.count < limits.codedValues else {
        throw ArchiveError(.limit, "A coded value has more than \(limits.codedValues) values inside", offset: input.offset)
      }
      let start = input.offset
      guard let tag = CodedTag(rawValue: try input.byte()) else { throw input.damaged("A coded value has an unknown tag") }
      entries.append(
        Entry(
          start: UInt32(truncatingIfNeeded: start), key: UInt32(truncatingIfNeeded: key),
          next: UInt32(truncatingIfNeeded: entries.count + 1)))
      if tag == .array || tag == .object {
        // At least a byte for each element, two for each field.
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

  /// The tag and, of a list or object, the count of what is inside.
  func head(_ entry: Int) throws -> (tag: CodedTag, count: Int) {
    try at(entry) { tag, input in (tag, tag == .array || tag == .object ? try input.count(limit: .max, "elements") : 0) }
  }

  /// A value that has no others inside; nil for a list or object.
  func leaf(_ entry: Int) throws -> CodedLeaf? {
    try at(entry) { tag, input in try CodedLeaf(tag, &input, stringLimit: limits.stringBytes) }
  }

  private func at<R>(_ entry: Int, _ body: (CodedTag, inout ByteCursor) throws -> R) throws -> R {
    try bytes.withUnsafeBytes { all in
      var input = ByteCursor(bytes: all, offset: Int(entries[entry].start), end: all.count)
      guard let tag = CodedTag(rawValue: try input.byte()) else { throw input.damaged("A coded value has an unknown tag") }
      return try body(tag, &input)
    }
  }

  /// The entry that follows one and all that is inside it.
  func after(_ entry: Int) -> Int { Int(entries[entry].next) }

  /// The fields of an object, by ascending key.
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

  /// The whole tree for inspection, objects as dictionaries. From the end to the beginning, so that what is inside a value is ready when
  /// its turn comes, without recursion.
  ///
  /// - Parameter isExact: Whether numbers that look alike are marked: see `ArchiveMark`.
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
          .dictionary(zip(fields(of: entry, count: count), inside).map { .init(key: .string(keys[$0.key]), value: $1) }))
      }
    }
    return ready.last ?? .none
  }
}
