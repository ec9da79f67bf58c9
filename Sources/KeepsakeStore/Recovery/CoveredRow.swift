import Crypto
import Foundation
import KeepsakeReplication

/// A row of the table `covered`: an id without a body, so it has a checksum of its own.
enum CoveredRow {
  private static let checksumLength = 8
  private static let prefix = Array("covered".utf8)

  static func checksum(of id: VersionID) -> Data {
    digest(of: id.bytes).withUnsafeBytes { Data($0[..<checksumLength]) }
  }

  /// Returns whether the checksum matches. Called for every row on each opening.
  static func isSound(id: Data, checksum: Data) -> Bool {
    guard id.count == VersionID.byteCount else { return false }
    return digest(of: id).withUnsafeBytes { digest in
      checksum.withUnsafeBytes { $0.elementsEqual(digest[..<checksumLength]) }
    }
  }

  private static func digest(of id: Data) -> SHA256.Digest {
    var hash = SHA256()
    prefix.withUnsafeBytes { hash.update(bufferPointer: $0) }
    id.withUnsafeBytes { hash.update(bufferPointer: $0) }
    return hash.finalize()
  }
}
