import Crypto
import Foundation
import KeepsakeReplication

/// A row of the table `covered`: an id without a body, so it has a checksum of its own.
enum CoveredRow {
  private static let checksumLength = 8

  static func checksum(of id: VersionID) -> Data {
    Data(SHA256.hash(data: Data("covered".utf8) + id.bytes).prefix(checksumLength))
  }

  static func isSound(id: Data, checksum: Data) -> Bool {
    guard let id = VersionID(bytes: id) else { return false }
    return Self.checksum(of: id) == checksum
  }
}
