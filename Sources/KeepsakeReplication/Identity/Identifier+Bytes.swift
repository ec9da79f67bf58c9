package import Foundation

extension Identifier {
  package static var byteCount: Int { 16 }

  /// The identifier's sixteen bytes, most significant first: they sort in the same order as identifiers.
  package var bytes: Data {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Data($0) }
  }

  /// Creates an identifier from its sixteen bytes; nil for any other count.
  package init?(bytes: Data) {
    guard bytes.count == Self.byteCount else { return nil }
    let (high, low) = bytes.withUnsafeBytes { raw in
      (raw.loadUnaligned(fromByteOffset: 0, as: UInt64.self), raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    self.init(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
  }
}
