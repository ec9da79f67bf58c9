extension WalletOffer: Codable {
  private enum CodingKeys: String, CodingKey {
    case chain, follows, base, statement, operations, late, waiting, needs, goods
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      chain: try container.decode(ChainID.self, forKey: .chain),
      follows: try container.decodeIfPresent(ChainID.self, forKey: .follows),
      base: try container.decode(ChainHead.self, forKey: .base),
      statement: try container.decodeIfPresent(UInt64.self, forKey: .statement) ?? 0,
      operations: try container.decodeList(forKey: .operations), late: try container.decodeList(forKey: .late),
      waiting: try container.decodeList(forKey: .waiting), needs: try container.decodeTable(forKey: .needs),
      goods: try container.decodeIfPresent(UInt64.self, forKey: .goods) ?? 0)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(chain, forKey: .chain)
    try container.encodeIfPresent(follows, forKey: .follows)
    try container.encode(base, forKey: .base)
    if statement != 0 { try container.encode(statement, forKey: .statement) }
    try container.encodeUnlessEmpty(operations, forKey: .operations)
    try container.encodeUnlessEmpty(late, forKey: .late)
    try container.encodeUnlessEmpty(waiting, forKey: .waiting)
    try container.encodeUnlessEmpty(needs, forKey: .needs)
    if goods != 0 { try container.encode(goods, forKey: .goods) }
  }
}

extension WalletReply: Codable {
  private enum CodingKeys: String, CodingKey {
    case chain, state, statement, totals, balances, recalled, decisions, held, goods
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      chain: try container.decode(ChainID.self, forKey: .chain),
      state: try container.decode(State.self, forKey: .state),
      statement: try container.decodeIfPresent(UInt64.self, forKey: .statement) ?? 0,
      totals: try container.decodeTable(forKey: .totals), balances: try container.decodeTable(forKey: .balances),
      recalled: try container.decodeTable(forKey: .recalled), decisions: try container.decodeList(forKey: .decisions),
      held: try container.decodeTable(forKey: .held),
      goods: try container.decodeIfPresent(WalletGoods.self, forKey: .goods))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(chain, forKey: .chain)
    try container.encode(state, forKey: .state)
    if statement != 0 { try container.encode(statement, forKey: .statement) }
    try container.encodeUnlessEmpty(totals, forKey: .totals)
    try container.encodeUnlessEmpty(balances, forKey: .balances)
    try container.encodeUnlessEmpty(recalled, forKey: .recalled)
    try container.encodeUnlessEmpty(decisions, forKey: .decisions)
    try container.encodeUnlessEmpty(held, forKey: .held)
    try container.encodeIfPresent(goods, forKey: .goods)
  }
}

// {"accepted": head}, {"from": {"head": head, "common": head}}, {"closed": head}
extension WalletReply.State: Codable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case accepted, from, closed
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
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .accepted(let head): try container.encode(head, forKey: .accepted)
    case .from(let head, let common): try container.encode(From(head: head, common: common), forKey: .from)
    case .closed(let common): try container.encode(common, forKey: .closed)
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
