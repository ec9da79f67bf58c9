#if Cloud
import Foundation
import KeepsakeReplication

/// What a bank keeps forever of operations whose details it has dropped, sorted by their ids: 22 bytes for each.
///
/// An entry is the operation's id, and six bytes with the first 47 bits of its fingerprint and the verdict. Only final
/// verdicts about operations are packed: accepted or declined.
struct PackedDecisions: Hashable, Sendable {
  struct Entry: Hashable, Sendable {
    var operation: OperationID
    var isAccepted: Bool
    var fingerprint: UInt64

    var decided: DecidedOperation {
      DecidedOperation(verdict: isAccepted ? .accepted : .declined, fingerprint: fingerprint, chain: nil)
    }
  }

  static let entryBytes = 22
  /// A row with this many fits into a page of SQLite (4,096 bytes), and into two pieces (1,996 bytes each) in which
  /// PostgreSQL stores long values: one more entry would be a third piece, and cost a third more in all.
  static let maximumEntries = 181
  /// Rows in SQLite that were packed earlier have one entry more.
  private static let longest = 182

  let bytes: Data

  /// The first entry's operation.
  var first: OperationID { self[0].operation }
  var count: Int { bytes.count / Self.entryBytes }

  /// Packs the entries of a slice, which are sorted by their operations and not empty.
  private init(sorted entries: ArraySlice<Entry>) {
    var bytes = Data(capacity: entries.count * Self.entryBytes)
    for entry in entries {
      bytes.append(entry.operation.bytes)
      let word = entry.fingerprint & WalletOperation.fingerprintMask | (entry.isAccepted ? 1 << 16 : 0)
      withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0.prefix(Self.entryBytes - 16)) }
    }
    self.bytes = bytes
  }

  /// Takes packed bytes; nil for what no packing gives. The order of the entries isn't checked.
  init?(bytes: Data) {
    guard !bytes.isEmpty, bytes.count.isMultiple(of: Self.entryBytes),
      bytes.count <= Self.longest * Self.entryBytes
    else { return nil }
    self.bytes = bytes
  }

  subscript(index: Int) -> Entry {
    bytes.withUnsafeBytes { raw in
      let offset = index * Self.entryBytes
      let operation = OperationID(
        high: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)),
        low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)))
      var word: UInt64 = 0
      for byte in raw[(offset + 16)..<(offset + Self.entryBytes)] { word = word << 8 | UInt64(byte) }
      word <<= 16
      return Entry(
        operation: operation, isAccepted: word & 1 << 16 != 0, fingerprint: word & WalletOperation.fingerprintMask)
    }
  }

  var entries: [Entry] { (0..<count).map { self[$0] } }

  /// Returns the entry of an operation by a binary search; nil if it isn't among these.
  func entry(of operation: OperationID) -> Entry? {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      let entry = self[middle]
      if entry.operation == operation { return entry }
      if entry.operation < operation { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  /// Packs entries in any order. Of several with one id, the first counts.
  static func packed(_ entries: [Entry]) -> [PackedDecisions] {
    // Sorting keeps no order of equal ones.
    let order = entries.indices.sorted {
      (entries[$0].operation, $0) < (entries[$1].operation, $1)
    }
    var sorted: [Entry] = []
    sorted.reserveCapacity(entries.count)
    for index in order where entries[index].operation != sorted.last?.operation { sorted.append(entries[index]) }
    return stride(from: 0, to: sorted.count, by: maximumEntries).map {
      PackedDecisions(sorted: sorted[$0..<min($0 + maximumEntries, sorted.count)])
    }
  }
}

extension PackedDecisions {
  /// Merges runs into one, a part at a time, so that however long they are, few entries are in memory.
  ///
  /// A run is decisions sorted by their operations, in parts. Of several entries with one id, the one in the foremost
  /// run counts.
  struct Merge {
    /// Returns the next part of a run; nil after the last one.
    typealias Run = () throws -> PackedDecisions?

    private struct Source {
      let next: Run
      var part: PackedDecisions?
      var index = 0

      var entry: Entry? { part.map { $0[index] } }

      init(_ next: @escaping Run) throws {
        self.next = next
        part = try next()
      }

      mutating func advance() throws {
        index += 1
        guard let part, index == part.count else { return }
        self.part = try next()
        index = 0
      }
    }

    private var sources: [Source]

    init(_ runs: [Run]) throws { sources = try runs.map(Source.init) }

    /// Returns the next part of the merged run, full unless it is the last one; nil after that.
    mutating func next() throws -> PackedDecisions? {
      var entries: [Entry] = []
      while entries.count < PackedDecisions.maximumEntries, let entry = try nextEntry() { entries.append(entry) }
      return entries.isEmpty ? nil : PackedDecisions(sorted: entries[...])
    }

    private mutating func nextEntry() throws -> Entry? {
      var least: Entry?
      for source in sources {
        guard let entry = source.entry else { continue }
        if let known = least, known.operation <= entry.operation { continue }
        least = entry
      }
      guard let least else { return nil }
      for index in sources.indices where sources[index].entry?.operation == least.operation {
        try sources[index].advance()
      }
      return least
    }
  }
}
#endif
