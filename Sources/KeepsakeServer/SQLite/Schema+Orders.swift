#if Cloud
import GRDB

// The migration to a bank with operations of its own.
extension Schema {
  /// Adds orders and receipts, what was paid for claims (unknown for those paid before) and in which order, vouchers
  /// (without their claims, which are the first so and so many of `paidClaim`), and numbers of the whole cloud.
  static func addOrders(to db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE bankOrder (
          container BLOB NOT NULL, number INTEGER NOT NULL, id BLOB NOT NULL, kind TEXT NOT NULL,
          details BLOB NOT NULL, UNIQUE (container, number), UNIQUE (container, id)
        ) STRICT;
        CREATE INDEX shortfall ON bankOrder (container) WHERE kind = 'shortfall';
        CREATE TABLE receipt (
          app BLOB NOT NULL, receipt BLOB NOT NULL, container BLOB NOT NULL, operation BLOB NOT NULL,
          PRIMARY KEY (app, receipt)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX receiptContainer ON receipt (container);
        CREATE INDEX devicePlayer ON device (player);
        ALTER TABLE paidClaim ADD COLUMN currency BLOB;
        ALTER TABLE paidClaim ADD COLUMN amount INTEGER;
        ALTER TABLE paidClaim ADD COLUMN number INTEGER;
        CREATE UNIQUE INDEX paidClaimNumber ON paidClaim (container, number) WHERE number IS NOT NULL;
        ALTER TABLE closedChain ADD COLUMN voucher BLOB;
        ALTER TABLE closedChain ADD COLUMN claims INTEGER;
        CREATE TABLE paidVoucher (
          container BLOB NOT NULL, bank BLOB NOT NULL, chain BLOB NOT NULL, PRIMARY KEY (container, bank, chain)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE vouchedClaim (
          container BLOB NOT NULL, bank BLOB NOT NULL, key BLOB NOT NULL, unsubtracted INTEGER NOT NULL,
          PRIMARY KEY (container, bank, key)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE number (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        """)
  }
}
#endif
