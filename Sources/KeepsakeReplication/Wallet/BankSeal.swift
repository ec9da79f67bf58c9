import Crypto
package import Foundation

/// What proves that a bank of this cloud made a statement or a voucher: an HMAC-SHA256 with a key that only the cloud
/// has.
package struct BankSeal: Hashable, Sendable {
  static let codeBytes = 32

  /// The container whose bank uses it. A statement is worth nothing at another one.
  package let bank: ContainerID
  /// The first one signs; all are accepted.
  private let keys: [Data]

  /// - Parameter keys: At least one. The first one signs; the others are earlier ones that are still accepted.
  package init(bank: ContainerID, keys: [Data]) { (self.bank, self.keys) = (bank, keys) }

  /// Returns the statement with its code.
  package func signed(_ statement: WalletStatement, on chain: ChainID) -> WalletStatement {
    var statement = statement
    statement.code = keys.first.map { Self.code(for: bytes(of: statement, chain), $0) } ?? Data()
    return statement
  }

  package func isValid(_ statement: WalletStatement, on chain: ChainID) -> Bool {
    isValid(statement.code, for: bytes(of: statement, chain))
  }

  /// Returns the voucher with its code. Its `bank` has to be this one.
  package func signed(_ voucher: WalletVoucher) -> WalletVoucher {
    var voucher = voucher
    voucher.code = keys.first.map { Self.code(for: Self.bytes(of: voucher), $0) } ?? Data()
    return voucher
  }

  /// Returns whether a bank of this cloud issued the voucher, and this one is to pay it.
  package func isValid(_ voucher: WalletVoucher) -> Bool {
    voucher.receiver == bank && isValid(voucher.code, for: Self.bytes(of: voucher))
  }

  /// Compares in constant time.
  private func isValid(_ code: Data, for bytes: Data) -> Bool {
    keys.contains {
      HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: bytes, using: SymmetricKey(data: $0))
    }
  }

  private static func code(for bytes: Data, _ key: Data) -> Data {
    Data(HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: key)))
  }

  // MARK: Bytes

  private func bytes(of statement: WalletStatement, _ chain: ChainID) -> Data {
    // So that one of a head is never taken for one that says that there are no totals.
    var bytes = SealedBytes(purpose: statement.isOfHead == true ? "head" : "statement")
    bytes.append(bank.bytes)
    bytes.append(chain.bytes)
    bytes.append(statement.epoch)
    bytes.append(statement.number)
    bytes.append(statement.head.count)
    bytes.append(statement.head.hash.bytes)
    bytes.append(UInt64(statement.totals.count))
    for (currency, totals) in statement.totals.sorted(by: { $0.key < $1.key }) {
      bytes.append(Data(currency.utf8))
      for term in [totals.granted, totals.earned, totals.spent, totals.returned] {
        bytes.append(UInt64(bitPattern: term))
      }
    }
    return bytes.data
  }

  private static func bytes(of voucher: WalletVoucher) -> Data {
    var bytes = SealedBytes(purpose: "voucher")
    bytes.append(voucher.bank.bytes)
    bytes.append(voucher.chain.bytes)
    bytes.append(voucher.receiver.bytes)
    bytes.append(UInt64(voucher.amounts.count))
    for (currency, amount) in voucher.amounts.sorted(by: { $0.key < $1.key }) {
      bytes.append(Data(currency.utf8))
      bytes.append(UInt64(bitPattern: amount))
    }
    bytes.append(UInt64(voucher.claims.count))
    for claim in voucher.claims {
      bytes.append(Data(claim.key.utf8))
      bytes.append(Data(claim.currency.utf8))
      bytes.append(UInt64(bitPattern: claim.amount))
    }
    return bytes.data
  }
}

/// Bytes to be signed: everything has its length before it, so that different values never have the same bytes.
private struct SealedBytes {
  private(set) var data = Data()

  init(purpose: String) { append(Data(purpose.utf8)) }

  mutating func append(_ number: UInt64) { withUnsafeBytes(of: number.bigEndian) { data.append(contentsOf: $0) } }

  mutating func append(_ bytes: Data) {
    append(UInt64(bytes.count))
    data.append(bytes)
  }
}
