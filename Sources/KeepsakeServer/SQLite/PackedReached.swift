#if Cloud
import Foundation
import KeepsakeReplication

/// How far the devices of a container have come, as its row has it: 24 bytes for each, sorted. Every exchange moves one
/// of them together with the container, so that one page has both.
///
///     16 bytes  the device
///      8 bytes  the seq, big-endian
struct PackedReached {
  private static let entryBytes = 24

  private(set) var seqs: [DeviceID: UInt64]

  init(_ seqs: [DeviceID: UInt64]) { self.seqs = seqs }

  init(bytes: Data) throws {
    guard bytes.count.isMultiple(of: Self.entryBytes) else { throw Self.damaged }
    seqs = [:]
    for start in stride(from: bytes.startIndex, to: bytes.endIndex, by: Self.entryBytes) {
      guard let device = DeviceID(bytes: Data(bytes[start..<(start + 16)])) else { throw Self.damaged }
      seqs[device] = bytes[(start + 16)..<(start + Self.entryBytes)].reduce(0) { $0 << 8 | UInt64($1) }
    }
  }

  var bytes: Data {
    var bytes = Data(capacity: seqs.count * Self.entryBytes)
    for (device, seq) in seqs.sorted(by: { $0.key < $1.key }) {
      bytes.append(device.bytes)
      withUnsafeBytes(of: seq.bigEndian) { bytes.append(contentsOf: $0) }
    }
    return bytes
  }

  /// Changes what one device has reached; nil removes it.
  subscript(device: DeviceID) -> UInt64? {
    get { seqs[device] }
    set { seqs[device] = newValue }
  }

  private static var damaged: ServerError {
    ServerError(.damaged, "What the devices of a container have reached can't be read.")
  }
}
#endif
