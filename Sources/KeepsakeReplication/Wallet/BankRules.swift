/// What a cloud's configuration says about its banks.
package struct BankRules: Hashable, Sendable {
  /// Currencies of which only the bank's own operations make more: no device earns them.
  package var authoritative: Set<String>
  /// What proves the bank's statements and vouchers; nil for a bank that makes none.
  package var seal: BankSeal?
  /// The epoch that the bank has to reach: it grows each time that the cloud is restored from a backup.
  package var epoch: UInt64

  package init(authoritative: Set<String> = [], seal: BankSeal? = nil, epoch: UInt64 = 0) {
    self.authoritative = authoritative
    self.seal = seal
    self.epoch = epoch
  }
}
