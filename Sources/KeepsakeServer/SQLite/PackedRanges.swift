#if Cloud
import Foundation
import KeepsakeReplication

/// Where the devices of a container may have been at a time: 16 bytes for each range, sorted.
///
///     8 bytes  from, big-endian
///     8 bytes  through, big-endian
struct PackedRanges {
  private static let entryBytes = 16

  private(set) var ranges: Set<DeviceRange>

  init(_ ranges: Set<DeviceRange>) { self.ranges = ranges }

  init(bytes: Data) throws {
    guard bytes.count.isMultiple(of: Self.entryBytes) else {
      throw ServerError(.damaged, "Where the devices of a container were can't be read.")
    }
    ranges = []
    for start in stride(from: bytes.startIndex, to: bytes.endIndex, by: Self.entryBytes) {
      func number(at offset: Int) -> UInt64 {
        bytes[(start + offset)..<(start + offset + 8)].reduce(0) { $0 << 8 | UInt64($1) }
      }
      ranges.insert(DeviceRange(from: number(at: 0), through: number(at: 8)))
    }
  }

  var bytes: Data {
    var bytes = Data(capacity: ranges.count * Self.entryBytes)
    for range in ranges.sorted() {
      for number in [range.from, range.through] {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
      }
    }
    return bytes
  }
}
#endif
