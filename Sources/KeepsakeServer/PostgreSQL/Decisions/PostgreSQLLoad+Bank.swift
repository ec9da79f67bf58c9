#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

// What is read of the bank.
extension PostgreSQLLoad {
  mutating func add(_ reads: BankReads) {
    if reads.state {
      add("SELECT bank FROM container WHERE id = $1") { rows, snapshot in
        if let bank = try rows.first?.optionalBytes(0) { snapshot.bank = try decoded(BankState.self, bank) }
      }
    }
    if !reads.decisions.isEmpty || !reads.operations.isEmpty { addDecisions(reads) }
    addClaims(reads)
    addOrders(reads)
    addGoods(reads)
    addChains(reads)
    if let receipt = reads.receipt {
      add(
        "SELECT container FROM receipt WHERE $1::bytea IS NOT NULL AND app = $2 AND receipt = $3",
        [.bytes(receipt.app), .bytes(receipt.hash.bytes)], joining: .apart
      ) { rows, snapshot in
        // A container without bytes is one that was deleted: nobody has this id.
        snapshot.receiptHolder = try rows.first.map {
          ContainerID(bytes: try $0.bytes(0)) ?? ContainerID(high: 0, low: 0)
        }
      }
    }
  }

  private mutating func addDecisions(_ reads: BankReads) {
    let ids = reads.decisions.union(reads.operations)
    add(
      """
      SELECT operation, verdict, fingerprint, chain, details FROM bank_decision
      WHERE container = $1 AND operation = ANY($2)
      """, [.list(ids.map(\.bytes))]
    ) { rows, snapshot in
      for row in rows {
        let id: OperationID = try row.identifier(0)
        let verdict = try row.verdict(1)
        if reads.decisions.contains(id) {
          snapshot.decisions[id] = DecidedOperation(
            verdict: verdict, fingerprint: try row.unsigned(2), chain: try row.identifier(3))
        }
        if reads.operations.contains(id) {
          snapshot.operations[id] = try decoded(WalletOperation.self, row.bytes(4))
        }
      }
    }
    if !reads.decisions.isEmpty { addPacked(reads.decisions) }
  }

  /// Finds operations whose decisions are packed. Of each run at most one row has an operation, and only rows that seem
  /// to have one are sent.
  private mutating func addPacked(_ operations: Set<OperationID>) {
    add(
      """
      SELECT asked.id, packed.entries FROM (
        SELECT level FROM generate_series(0::bigint, $3) AS known (level)
        WHERE EXISTS (SELECT 1 FROM packed_decision WHERE container = $1 AND packed_decision.level = known.level)
      ) AS run CROSS JOIN unnest($2) AS asked (id) CROSS JOIN LATERAL (
        SELECT entries FROM packed_decision
        WHERE container = $1 AND packed_decision.level = run.level AND first <= asked.id ORDER BY first DESC LIMIT 1
      ) AS packed
      WHERE position(asked.id IN packed.entries) > 0 ORDER BY run.level
      """, [.list(operations.map(\.bytes)), .int(PackedDecisions.levels - 1)]
    ) { rows, snapshot in
      for row in rows {
        let id: OperationID = try row.identifier(0)
        // One in detail counts more, and then the newest run.
        guard snapshot.decisions[id] == nil else { continue }
        snapshot.decisions[id] = try PackedDecisions.stored(row.bytes(1)).entry(of: id)?.decided
      }
    }
  }

  // MARK: Claims and vouchers

  private mutating func addClaims(_ reads: BankReads) {
    if !reads.claims.isEmpty {
      add(
        "SELECT key FROM paid_claim WHERE container = $1 AND key = ANY($2)",
        [.list(reads.claims.map { Data($0.text.utf8) })]
      ) { rows, snapshot in
        for row in rows { snapshot.paidClaims.insert(ExactText(try row.text(0))) }
      }
    }
    if let limit = reads.payments { addPayments(limit) { $1.payments = $0 } }
    if !reads.paidVouchers.isEmpty {
      let vouchers = Array(reads.paidVouchers)
      add(
        """
        SELECT bank, chain FROM paid_voucher
        WHERE container = $1 AND (bank, chain) IN (SELECT * FROM unnest($2::bytea[], $3::bytea[]))
        """, [.list(vouchers.map(\.bank.bytes)), .list(vouchers.map(\.chain.bytes))]
      ) { rows, snapshot in
        let paid = Set(try rows.map { [try $0.bytes(0), try $0.bytes(1)] })
        snapshot.paidVouchers = Set(vouchers.filter { paid.contains([$0.bank.bytes, $0.chain.bytes]) })
      }
    }
    if !reads.vouchedClaims.isEmpty {
      let claims = Array(reads.vouchedClaims)
      add(
        """
        SELECT bank, key, unsubtracted FROM vouched_claim
        WHERE container = $1 AND (bank, key) IN (SELECT * FROM unnest($2::bytea[], $3::bytea[]))
        """, [.list(claims.map(\.bank.bytes)), .list(claims.map { Data($0.key.text.utf8) })]
      ) { rows, snapshot in
        var left: [[Data]: Int64] = [:]
        for row in rows { left[[try row.bytes(0), try row.bytes(1)]] = try row.int(2) }
        for claim in claims { snapshot.vouchedClaims[claim] = left[[claim.bank.bytes, Data(claim.key.text.utf8)]] }
      }
    }
  }

  /// In the order in which they were paid, so that the claims of a voucher are the first so and so many of them.
  private mutating func addPayments(
    _ limit: Int, _ body: @escaping ([WalletVoucher.Claim], inout Snapshot) throws -> Void
  ) {
    add(
      """
      SELECT key, currency, amount FROM paid_claim WHERE container = $1 AND number IS NOT NULL ORDER BY number LIMIT $2
      """, [.int(Int64(limit))]
    ) { rows, snapshot in
      let payments = try rows.map {
        WalletVoucher.Claim(key: try $0.text(0), currency: try $0.text(1), amount: try $0.int(2))
      }
      try body(payments, &snapshot)
    }
  }

  // MARK: Orders and goods

  private mutating func addOrders(_ reads: BankReads) {
    if !reads.orders.isEmpty {
      add(
        "SELECT id, details FROM bank_order WHERE container = $1 AND id = ANY($2)",
        [.list(reads.orders.map(\.bytes))]
      ) { rows, snapshot in
        for row in rows { snapshot.orders[try row.identifier(0)] = try decoded(BankOrder.self, row.bytes(1)) }
      }
    }
    if let range = reads.ordersAfter {
      add(
        "SELECT number, details FROM bank_order WHERE container = $1 AND number > $2 ORDER BY number LIMIT $3",
        [.int(Int64(bitPattern: range.after)), .int(Int64(range.limit))]
      ) { rows, snapshot in
        snapshot.ordersAfter = try rows.map {
          NumberedOrder(number: try $0.unsigned(0), order: try decoded(BankOrder.self, $0.bytes(1)))
        }
      }
    }
  }

  private mutating func addGoods(_ reads: BankReads) {
    if reads.allGoods || !reads.goods.isEmpty {
      let names = reads.allGoods ? nil : reads.goods.map { Data($0.text.utf8) }
      add(
        "SELECT name, count FROM good WHERE container = $1 AND ($2::bytea[] IS NULL OR name = ANY($2::bytea[]))",
        [.list(names)]
      ) { rows, snapshot in
        for row in rows { snapshot.goods[ExactText(try row.text(0))] = try row.int(1) }
      }
    }
    if let range = reads.goodsAfter {
      // All of one number, or none.
      add(
        """
        SELECT name, count, number FROM good WHERE container = $1 AND number > $2 AND number <= (
          SELECT max(number) FROM (
            SELECT number FROM good WHERE container = $1 AND number > $2 ORDER BY number LIMIT $3
          ) AS first
        ) ORDER BY number, name
        """, [.int(Int64(bitPattern: range.after)), .int(Int64(range.limit))]
      ) { rows, snapshot in
        snapshot.goodsAfter = try rows.map {
          NumberedGood(name: try $0.text(0), count: try $0.int(1), number: try $0.unsigned(2))
        }
      }
    }
  }

  // MARK: Chains

  private mutating func addChains(_ reads: BankReads) {
    if reads.allClosedChains || !reads.closedChains.isEmpty {
      add(
        """
        SELECT chain, count, hash, follows FROM closed_chain
        WHERE container = $1 AND ($2::bytea[] IS NULL OR chain = ANY($2::bytea[]))
        """, [.list(reads.allClosedChains ? nil : reads.closedChains.map(\.bytes))]
      ) { rows, snapshot in
        for row in rows {
          snapshot.closedChains[try row.identifier(0)] = BankState.ClosedChain(
            head: ChainHead(count: try row.unsigned(1), hash: try row.hash(2)),
            follows: try row.optionalBytes(3) == nil ? nil : try row.identifier(3))
        }
      }
    }
    for chain in reads.vouchers.sorted() { addVoucher(of: chain) }
  }

  private mutating func addVoucher(of chain: ChainID) {
    add(
      """
      SELECT voucher, claims FROM closed_chain WHERE container = $1 AND chain = $2 AND voucher IS NOT NULL
      """, [.bytes(chain.bytes)]
    ) { rows, snapshot in
      guard let row = rows.first else { return }
      snapshot.vouchers[chain] = try decoded(WalletVoucher.self, row.bytes(0))
    }
    // As many as the voucher lists: they are the first of all.
    add(
      """
      SELECT key, currency, amount, (SELECT claims FROM closed_chain WHERE container = $1 AND chain = $2)
      FROM paid_claim WHERE container = $1 AND number IS NOT NULL AND number <= (
        SELECT claims FROM closed_chain WHERE container = $1 AND chain = $2
      ) ORDER BY number
      """, [.bytes(chain.bytes)]
    ) { rows, snapshot in
      guard snapshot.vouchers[chain] != nil else { return }
      let claims = try rows.map {
        WalletVoucher.Claim(key: try $0.text(0), currency: try $0.text(1), amount: try $0.int(2))
      }
      if let row = rows.first, try row.int(3) != Int64(claims.count) {
        throw ServerError(.damaged, "Claims of a container's bank are missing, which a voucher lists.")
      }
      snapshot.vouchers[chain]?.claims = claims
    }
  }
}
#endif
