#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

// What is written of the bank.
extension PostgreSQLCommit {
  mutating func addBank(_ writes: WriteSet, _ encoded: EncodedRows) throws {
    if let receipt = writes.receipt { take(receipt) }
    addDecisions(writes, encoded)
    for claim in writes.claims { markPaid(claim.key, claim.payment) }
    for voucher in writes.paidVouchers {
      add(
        "INSERT INTO paid_voucher (container, bank, chain) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        [.bytes(voucher.bank.bytes), .bytes(voucher.chain.bytes)])
    }
    for (claim, left) in writes.vouchedClaims {
      add(
        """
        INSERT INTO vouched_claim (container, bank, key, unsubtracted) VALUES ($1, $2, $3, $4)
        ON CONFLICT (container, bank, key) DO UPDATE SET unsubtracted = excluded.unsubtracted
        """, [.bytes(claim.bank.bytes), .bytes(Data(claim.key.text.utf8)), .int(left)])
    }
    for (order, details) in zip(writes.orders, encoded.orders) {
      add(
        "INSERT INTO bank_order (container, number, id, kind, details) VALUES ($1, $2, $3, $4, $5)",
        [
          .signed(order.number), .bytes(order.order.id.bytes), .bytes(Data(order.order.kind.rawValue.utf8)),
          .bytes(details),
        ])
    }
    for good in writes.goods.values {
      add(
        """
        INSERT INTO good (container, name, count, number) VALUES ($1, $2, $3, $4)
        ON CONFLICT (container, name) DO UPDATE SET count = excluded.count, number = excluded.number
        """, [.bytes(Data(good.name.utf8)), .int(good.count), .signed(good.number)])
    }
    try addChains(writes)
  }

  private mutating func addDecisions(_ writes: WriteSet, _ encoded: EncodedRows) {
    var isNumbered = false
    for (decision, details) in zip(writes.decisions, encoded.decisions) {
      // Only what may be packed one day is numbered.
      let isFinal = decision.verdict.isFinal && decision.operation.goods.isEmpty
      isNumbered = isNumbered || isFinal
      add(
        """
        INSERT INTO bank_decision (container, operation, chain, verdict, fingerprint, details, arrival)
        SELECT $1, $2, $3, $4, $5, $6, CASE WHEN $7 = 1 THEN 1 + coalesce((
          SELECT max(arrival) FROM bank_decision WHERE container = $1 AND arrival IS NOT NULL
        ), 0) END
        ON CONFLICT (container, operation) DO UPDATE SET chain = excluded.chain, verdict = excluded.verdict,
          fingerprint = excluded.fingerprint, details = excluded.details, arrival = excluded.arrival
        """,
        [
          .bytes(decision.operation.id.bytes), .bytes(decision.chain.bytes),
          .bytes(Data(decision.verdict.rawValue.utf8)), .signed(decision.operation.fingerprint), .bytes(details),
          .flag(isFinal),
        ])
    }
    if isNumbered { addSpan() }
  }

  /// Marks a receipt as paid to this container's player. Fails as at another revision if it was paid to another player
  /// in the meantime.
  private mutating func take(_ receipt: Receipt) {
    add(
      """
      WITH taken AS (
        INSERT INTO receipt (app, receipt, container, operation) VALUES ($2, $3, $1, $4)
        ON CONFLICT (app, receipt) DO NOTHING RETURNING 1
      ) SELECT 1 / count(*) FROM taken
      """, [.bytes(receipt.app), .bytes(receipt.hash.bytes), .bytes(receipt.operation.bytes)])
  }

  private mutating func markPaid(_ key: String, _ payment: ClaimPayment?) {
    let key = PostgreSQLValue.bytes(Data(key.utf8))
    guard let payment else {
      return add("INSERT INTO paid_claim (container, key) VALUES ($1, $2) ON CONFLICT DO NOTHING", [key])
    }
    add(
      """
      INSERT INTO paid_claim (container, key, currency, amount, number)
      SELECT $1, $2, $3, $4, 1 + coalesce((SELECT max(number) FROM paid_claim WHERE container = $1), 0)
      ON CONFLICT (container, key) DO NOTHING
      """, [key, .bytes(Data(payment.currency.utf8)), .int(payment.amount)])
  }

  private mutating func addChains(_ writes: WriteSet) throws {
    for closed in writes.closedChains {
      add(
        """
        INSERT INTO closed_chain (container, chain, count, hash, follows) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT DO NOTHING
        """,
        [
          .bytes(closed.id.bytes), .signed(closed.chain.head.count), .bytes(closed.chain.head.hash.bytes),
          .bytes(closed.chain.follows?.bytes),
        ])
    }
    for voucher in writes.vouchers {
      // Of the claims only how many they are: many chains may leave with the same 20,000.
      var kept = voucher
      kept.claims = []
      add(
        "UPDATE closed_chain SET voucher = $3, claims = $4 WHERE container = $1 AND chain = $2",
        [.bytes(voucher.chain.bytes), .bytes(try EncodedRows.encode(kept)), .int(Int64(voucher.claims.count))])
    }
  }
}
#endif
