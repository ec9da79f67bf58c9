package import Foundation
package import KeepsakeReplication

/// A save that is cut into contents without looking at other saves: the same bytes have the same contents on each
/// device, whatever its slot had before.
package struct SegmentedSave: Sendable {
  /// The bytes of each content, in order.
  let segments: [Data]
  package let hashes: [ContentHash]

  /// Cuts and hashes the bytes. Costs two passes over them.
  package init(_ bytes: Data) {
    segments = Segmenter.segments(of: bytes)
    hashes = segments.map { ContentHash(of: $0) }
  }
}

extension StoreTransaction {
  /// Stores the contents of a save. Compresses within the transaction.
  package mutating func keepContents(of save: SegmentedSave) throws {
    for segment in save.segments { _ = try keepContent(segment) }
  }
}
