import Crypto
import Foundation
import GRDB
import KeepsakeReplication

/// A row of the table `performed`: an operation that was performed here, or a payment that was claimed. Like a row of
/// `covered`, it has no body, and a checksum of its own.
struct PerformedRow {
  static let columns = "key, fingerprint, checksum"
  private static let checksumLength = 8
  private static let prefix = Array("performed".utf8)
  private static let claimPrefix = Data("claim".utf8)
  /// Differs from the length of an operation's id, so that no claim can pass for an operation.
  private static let claimLength = 20

  var key: Data
  /// The operation's fingerprint; 0 for a payment, of which only the key counts.
  var fingerprint: UInt64

  init(_ operation: WalletOperation) {
    self.init(key: Self.key(of: operation.id), fingerprint: operation.fingerprint)
  }

  init(claim: String) { self.init(key: Self.key(ofClaim: claim), fingerprint: 0) }

  private init(key: Data, fingerprint: UInt64) { (self.key, self.fingerprint) = (key, fingerprint) }

  /// Throws `damaged` unless the checksum matches. Called for every row on each opening.
  init(_ row: Row) throws {
    let stored: Int64 = try row.checked(at: 1, "fingerprint")
    self.init(key: try row.checked(at: 0, "key"), fingerprint: UInt64(bitPattern: stored))
    guard isSound(try row.checked(at: 2, "checksum")) else {
      throw StoreError(.damaged, "the record of a performed operation is damaged")
    }
  }

  /// Nil unless it is a row of this table, with the right checksum.
  init?(_ row: SalvagedRow) {
    guard let key = row.data("key"), let stored = row.integer("fingerprint"), let checksum = row.data("checksum") else {
      return nil
    }
    self.init(key: key, fingerprint: UInt64(bitPattern: stored))
    guard isSound(checksum) else { return nil }
  }

  static func key(of id: OperationID) -> Data { id.bytes }

  /// Returns a part of a hash over the claim's key: as long for each, and what a sealed store has claimed isn't
  /// readable in it.
  static func key(ofClaim claim: String) -> Data {
    SHA256.hash(data: claimPrefix + Data(claim.utf8)).withUnsafeBytes { Data($0[..<claimLength]) }
  }

  /// The values of the columns.
  var arguments: StatementArguments {
    [key, Int64(bitPattern: fingerprint), digest.withUnsafeBytes { Data($0[..<Self.checksumLength]) }]
  }

  private func isSound(_ checksum: Data) -> Bool {
    guard key.count == OperationID.byteCount || key.count == Self.claimLength else { return false }
    return digest.withUnsafeBytes { digest in
      checksum.withUnsafeBytes { $0.elementsEqual(digest[..<Self.checksumLength]) }
    }
  }

  private var digest: SHA256.Digest {
    var hash = SHA256()
    Self.prefix.withUnsafeBytes { hash.update(bufferPointer: $0) }
    key.withUnsafeBytes { hash.update(bufferPointer: $0) }
    withUnsafeBytes(of: fingerprint.bigEndian) { hash.update(bufferPointer: $0) }
    return hash.finalize()
  }
}
