import Crypto
import Foundation

extension ChainHead {
  /// The head of a chain without operations.
  package init(emptyChain chain: ChainID) {
    var hasher = SHA256()
    hasher.update(chain.high)
    hasher.update(chain.low)
    self.init(count: 0, hash: ContentHash(digest: hasher.finalize()))
  }

  /// Returns the head after `operation`: two chains with the same head have had the same operations in the same order.
  package func appending(_ operation: WalletOperation) -> ChainHead {
    var hasher = SHA256()
    hasher.update(data: hash.bytes)
    hasher.update(operation.id.high)
    hasher.update(operation.id.low)
    hasher.update(operation.kind.rule.tag)
    operation.hashKind(into: &hasher)
    hasher.update(operation.currency)
    hasher.update(UInt64(bitPattern: operation.amount))
    hasher.update(operation.reason)
    hasher.update(UInt64(operation.goods.count))
    for good in operation.goods { hasher.update(good) }
    hasher.update(UInt64(bitPattern: operation.madeAtMilliseconds))
    if let group = operation.group {
      hasher.update(group.high)
      hasher.update(group.low)
    }
    return ChainHead(count: count &+ 1, hash: ContentHash(digest: hasher.finalize()))
  }
}

extension SHA256 {
  /// Hashes a number as eight big-endian bytes, and a text after its length, so that different inputs never have the
  /// same bytes.
  mutating func update(_ number: UInt64) {
    withUnsafeBytes(of: number.bigEndian) { update(bufferPointer: $0) }
  }

  mutating func update(_ text: String) {
    let bytes = Data(text.utf8)
    update(UInt64(bytes.count))
    update(data: bytes)
  }
}
