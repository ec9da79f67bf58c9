import Foundation
import KeepsakeReplication

extension Identifier {
  /// The sixteen bytes of an identifier, which sort as identifiers do.
  var bytes: Data {
    var result = Data(capacity: 16)
    withUnsafeBytes(of: high.bigEndian) { result.append(contentsOf: $0) }
    withUnsafeBytes(of: low.bigEndian) { result.append(contentsOf: $0) }
    return result
  }

  init?(bytes: Data) {
    guard bytes.count == 16 else { return nil }
    let (high, low) = bytes.withUnsafeBytes { raw in
      (raw.loadUnaligned(fromByteOffset: 0, as: UInt64.self), raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    self.init(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
  }
}
