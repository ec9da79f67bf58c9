#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Vouchers in SQLite: what chains take along to another bank, and the claims that they list.
@Suite("Vouchers of a bank, in SQLite") struct VoucherStorageTests {
  private static let player = ContainerID(high: 3, low: 4)
  private static let other = ContainerID(high: 3, low: 5)

  private func with(_ body: (SQLiteCloudStorage) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let storage = try SQLiteCloudStorage(
        database: folder.appendingPathComponent("cloud.sqlite"), contents: contents)
      try await body(storage)
      try await storage.close()
    }
  }

  private static func close(_ chain: ChainID, in container: inout SQLiteContainer) throws {
    try container.recordClosedChain(
      BankState.ClosedChain(head: ChainHead(emptyChain: chain), follows: nil), chain)
  }

  private static func voucher(_ number: UInt64, _ claims: [WalletVoucher.Claim]) -> WalletVoucher {
    WalletVoucher(
      bank: player, chain: ChainID(high: 0, low: number), receiver: other, amounts: ["gems": 5], claims: claims,
      code: Data([1, 2, 3]))
  }

  private static func claim(_ key: String) -> WalletVoucher.Claim {
    WalletVoucher.Claim(key: key, currency: "gems", amount: 3)
  }

  @Test("claims are listed in the order in which they were paid; those of which nothing is known aren't")
  func payments() async throws {
    try await with { storage async throws in
      try await storage.transaction(on: Self.player) { container throws in
        #expect(try container.payments(limit: 9).isEmpty)
        for key in ["c", "a", "b", "a"] {
          try container.markClaimPaid(key, ClaimPayment(currency: "gems", amount: 3))
        }
        try container.markClaimPaid("old", nil)
        #expect(try container.payments(limit: 9) == [Self.claim("c"), Self.claim("a"), Self.claim("b")])
        #expect(try container.payments(limit: 2) == [Self.claim("c"), Self.claim("a")])
        #expect(try container.isClaimPaid("old"))
      }
      try await storage.transaction(on: Self.other) { container throws in
        #expect(try container.payments(limit: 9).isEmpty)
      }
    }
  }

  @Test("a voucher has the claims of its time, however many are paid later, and its row has none of them")
  func vouchers() async throws {
    try await with { storage async throws in
      try await storage.transaction(on: Self.player) { container throws in
        for key in ["z", "y"] { try container.markClaimPaid(key, ClaimPayment(currency: "gems", amount: 3)) }
        let (first, chain) = (Self.voucher(1, try container.payments(limit: 9)), ChainID(high: 0, low: 1))
        #expect(try container.voucher(of: chain) == nil)
        try Self.close(chain, in: &container)
        #expect(try container.voucher(of: chain) == nil, "it was closed, and took nothing along")
        try container.recordVoucher(first)
        try container.markClaimPaid("a", ClaimPayment(currency: "gems", amount: 3))
        let second = Self.voucher(2, try container.payments(limit: 9))
        try Self.close(second.chain, in: &container)
        try container.recordVoucher(second)
        let none = Self.voucher(3, [])
        try Self.close(none.chain, in: &container)
        try container.recordVoucher(none)
        for voucher in [first, second, none] { #expect(try container.voucher(of: voucher.chain) == voucher) }
        #expect(first.claims.count == 2 && second.claims.count == 3)
        let texts = try container.rows("SELECT voucher FROM closedChain WHERE container = ?", [container.id])
          .map { String(decoding: try $0.decode(Data.self, atIndex: 0), as: UTF8.self) }
        #expect(texts.count == 3 && texts.allSatisfy { $0.contains("\"claims\":[]") })
      }
    }
  }

  @Test("an order's kind is found without reading the others, and a voucher whose claims are lost is reported")
  func damage() async throws {
    try await with { storage async throws in
      try await storage.transaction(on: Self.player) { container throws in
        try container.markClaimPaid("z", ClaimPayment(currency: "gems", amount: 3))
        let voucher = Self.voucher(1, try container.payments(limit: 9))
        try Self.close(voucher.chain, in: &container)
        try container.recordVoucher(voucher)
        try container.run("DELETE FROM paidClaim WHERE container = ?", [container.id])
        let damaged = container
        #expect(throws: ServerError.self) { try damaged.voucher(of: voucher.chain) }
        let plan = try container.rows(
          "EXPLAIN QUERY PLAN SELECT number FROM bankOrder WHERE container = ? AND kind = 'shortfall'", [container.id])
        #expect(plan.contains { ($0["detail"] as String?)?.contains("INDEX shortfall") == true })
      }
    }
  }
}
#endif
