import Foundation

extension WalletOffer: Codable {
  private enum CodingKeys: String, CodingKey {
    case chain, version, follows, base, statement, epoch, proving, proof, skipsLost, operations, late, ancestors, again
    case waiting, needs, goods, orders, vouchers, leaving, settled
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      chain: try container.decode(ChainID.self, forKey: .chain),
      version: try container.decodeIfPresent(Int.self, forKey: .version) ?? 1,
      follows: try container.decodeIfPresent(ChainID.self, forKey: .follows),
      base: try container.decode(ChainHead.self, forKey: .base),
      statement: try container.decodeIfPresent(UInt64.self, forKey: .statement) ?? 0,
      epoch: try container.decodeIfPresent(UInt64.self, forKey: .epoch) ?? 0,
      proving: try container.decodeIfPresent(UInt64.self, forKey: .proving),
      proof: try container.decodeIfPresent(WalletStatement.self, forKey: .proof),
      settled: try container.decodeIfPresent(SettledOperations.self, forKey: .settled),
      skipsLost: try container.decodeIfPresent(Bool.self, forKey: .skipsLost) ?? false,
      operations: try container.decodeList(forKey: .operations), late: try container.decodeList(forKey: .late),
      ancestors: try container.decodeList(forKey: .ancestors),
      again: try container.decodeIfPresent(Int.self, forKey: .again) ?? 0,
      waiting: try container.decodeList(forKey: .waiting), needs: try container.decodeTable(forKey: .needs),
      goods: try container.decodeIfPresent(UInt64.self, forKey: .goods) ?? 0,
      orders: try container.decodeIfPresent(UInt64.self, forKey: .orders) ?? 0,
      vouchers: try container.decodeList(forKey: .vouchers),
      leaving: try container.decodeIfPresent(ContainerID.self, forKey: .leaving))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(chain, forKey: .chain)
    if version != 1 { try container.encode(version, forKey: .version) }
    try container.encodeIfPresent(follows, forKey: .follows)
    try container.encode(base, forKey: .base)
    if statement != 0 { try container.encode(statement, forKey: .statement) }
    if epoch != 0 { try container.encode(epoch, forKey: .epoch) }
    try container.encodeIfPresent(proving, forKey: .proving)
    try container.encodeIfPresent(proof, forKey: .proof)
    try container.encodeIfPresent(settled, forKey: .settled)
    if skipsLost { try container.encode(skipsLost, forKey: .skipsLost) }
    try container.encodeUnlessEmpty(operations, forKey: .operations)
    try container.encodeUnlessEmpty(late, forKey: .late)
    try container.encodeUnlessEmpty(ancestors, forKey: .ancestors)
    if again != 0 { try container.encode(again, forKey: .again) }
    try container.encodeUnlessEmpty(waiting, forKey: .waiting)
    try container.encodeUnlessEmpty(needs, forKey: .needs)
    if goods != 0 { try container.encode(goods, forKey: .goods) }
    if orders != 0 { try container.encode(orders, forKey: .orders) }
    try container.encodeUnlessEmpty(vouchers, forKey: .vouchers)
    try container.encodeIfPresent(leaving, forKey: .leaving)
  }
}

extension WalletReply: Codable {
  private enum CodingKeys: String, CodingKey {
    case chain, state, statement, epoch, code, totals, balances, recalled, decisions, held, goods, orders, owed
    case authoritative, voucher, takenVouchers, declinedVouchers, proof
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      chain: try container.decode(ChainID.self, forKey: .chain),
      state: try container.decode(State.self, forKey: .state),
      statement: try container.decodeIfPresent(UInt64.self, forKey: .statement) ?? 0,
      epoch: try container.decodeIfPresent(UInt64.self, forKey: .epoch) ?? 0,
      code: try container.decodeIfPresent(Data.self, forKey: .code) ?? Data(),
      totals: try container.decodeTable(forKey: .totals), balances: try container.decodeTable(forKey: .balances),
      recalled: try container.decodeTable(forKey: .recalled), decisions: try container.decodeList(forKey: .decisions),
      held: try container.decodeTable(forKey: .held),
      goods: try container.decodeIfPresent(WalletGoods.self, forKey: .goods),
      orders: try container.decodeList(forKey: .orders), owed: try container.decodeTable(forKey: .owed),
      authoritative: try container.decodeList(forKey: .authoritative),
      voucher: try container.decodeIfPresent(WalletVoucher.self, forKey: .voucher),
      takenVouchers: try container.decodeList(forKey: .takenVouchers),
      declinedVouchers: try container.decodeList(forKey: .declinedVouchers),
      proof: try container.decodeIfPresent(WalletStatement.self, forKey: .proof))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(chain, forKey: .chain)
    try container.encode(state, forKey: .state)
    if statement != 0 { try container.encode(statement, forKey: .statement) }
    if epoch != 0 { try container.encode(epoch, forKey: .epoch) }
    try container.encodeUnlessEmpty(code, forKey: .code)
    try container.encodeUnlessEmpty(totals, forKey: .totals)
    try container.encodeUnlessEmpty(balances, forKey: .balances)
    try container.encodeUnlessEmpty(recalled, forKey: .recalled)
    try container.encodeUnlessEmpty(decisions, forKey: .decisions)
    try container.encodeUnlessEmpty(held, forKey: .held)
    try container.encodeIfPresent(goods, forKey: .goods)
    try container.encodeUnlessEmpty(orders, forKey: .orders)
    try container.encodeUnlessEmpty(owed, forKey: .owed)
    try container.encodeUnlessEmpty(authoritative, forKey: .authoritative)
    try container.encodeIfPresent(voucher, forKey: .voucher)
    try container.encodeUnlessEmpty(takenVouchers, forKey: .takenVouchers)
    try container.encodeUnlessEmpty(declinedVouchers, forKey: .declinedVouchers)
    try container.encodeIfPresent(proof, forKey: .proof)
  }
}

// {"accepted": head}, {"from": {"head": head, "common": head}}, {"closed": head}, {"restored": true}
extension WalletReply.State: Codable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case accepted, from, closed, restored
  }

  private struct From: Codable {
    var head: ChainHead
    var common: ChainHead?
  }

  package init(from decoder: any Decoder) throws {
    let (container, key) = try decoder.decodeCase(by: CodingKeys.self)
    switch key {
    case .accepted: self = .accepted(try container.decode(ChainHead.self, forKey: key))
    case .from:
      let from = try container.decode(From.self, forKey: key)
      self = .from(head: from.head, common: from.common)
    case .closed: self = .closed(common: try container.decode(ChainHead.self, forKey: key))
    case .restored: self = .restored
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .accepted(let head): try container.encode(head, forKey: .accepted)
    case .from(let head, let common): try container.encode(From(head: head, common: common), forKey: .from)
    case .closed(let common): try container.encode(common, forKey: .closed)
    case .restored: try container.encode(true, forKey: .restored)
    }
  }
}

// The kind is a word; what else it has is beside it.
extension WalletOperation: Codable {
  private enum CodingKeys: String, CodingKey {
    case id, kind, key, to, received, currency, amount, reason, goods, madeAtMilliseconds, group
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    id = try container.decode(OperationID.self, forKey: .id)
    let word = try container.decode(String.self, forKey: .kind)
    let kind = try Kind(
      word: word, key: { try container.decode(String.self, forKey: .key) },
      to: { try container.decode(String.self, forKey: .to) },
      received: { try container.decode(Int64.self, forKey: .received) })
    guard let kind else {
      throw DecodingError.dataCorruptedError(
        forKey: .kind, in: container, debugDescription: "\"\(word.prefix(40))\" is not a kind of operation")
    }
    self.kind = kind
    currency = try container.decode(String.self, forKey: .currency)
    amount = try container.decode(Int64.self, forKey: .amount)
    reason = try container.decode(String.self, forKey: .reason)
    goods = try container.decodeList(forKey: .goods)
    madeAtMilliseconds = try container.decodeIfPresent(Int64.self, forKey: .madeAtMilliseconds) ?? 0
    group = try container.decodeIfPresent(OperationID.self, forKey: .group)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encode(kind.rule.word, forKey: .kind)
    switch kind {
    case .earn, .spend, .giveBack: break
    case .claim(let key): try container.encode(key, forKey: .key)
    case .convert(let currency, let received):
      try container.encode(currency, forKey: .to)
      try container.encode(received, forKey: .received)
    }
    try container.encode(currency, forKey: .currency)
    try container.encode(amount, forKey: .amount)
    try container.encode(reason, forKey: .reason)
    try container.encodeUnlessEmpty(goods, forKey: .goods)
    if madeAtMilliseconds != 0 { try container.encode(madeAtMilliseconds, forKey: .madeAtMilliseconds) }
    try container.encodeIfPresent(group, forKey: .group)
  }
}
