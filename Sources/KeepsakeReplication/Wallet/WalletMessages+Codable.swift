extension WalletOffer: Codable {
  private enum CodingKeys: String, CodingKey {
    case chain, follows, base, operations, late, wanted
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    chain = try container.decode(ChainID.self, forKey: .chain)
    follows = try container.decodeIfPresent(ChainID.self, forKey: .follows)
    base = try container.decode(ChainHead.self, forKey: .base)
    operations = try container.decodeList(forKey: .operations)
    late = try container.decodeList(forKey: .late)
    wanted = try container.decodeTable(forKey: .wanted)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(chain, forKey: .chain)
    try container.encodeIfPresent(follows, forKey: .follows)
    try container.encode(base, forKey: .base)
    try container.encodeUnlessEmpty(operations, forKey: .operations)
    try container.encodeUnlessEmpty(late, forKey: .late)
    try container.encodeUnlessEmpty(wanted, forKey: .wanted)
  }
}

extension WalletReply: Codable {
  private enum CodingKeys: String, CodingKey {
    case chain
    case state = "standing"
    case totals, balances, recalled, decisions
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    chain = try container.decode(ChainID.self, forKey: .chain)
    state = try container.decode(State.self, forKey: .state)
    totals = try container.decodeTable(forKey: .totals)
    balances = try container.decodeTable(forKey: .balances)
    recalled = try container.decodeTable(forKey: .recalled)
    decisions = try container.decodeList(forKey: .decisions)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(chain, forKey: .chain)
    try container.encode(state, forKey: .state)
    try container.encodeUnlessEmpty(totals, forKey: .totals)
    try container.encodeUnlessEmpty(balances, forKey: .balances)
    try container.encodeUnlessEmpty(recalled, forKey: .recalled)
    try container.encodeUnlessEmpty(decisions, forKey: .decisions)
  }
}

// {"accepted": head}, {"begun": head}, {"fenced": head}, {"behind": head}, {"fork": {"head": head, "common": head}}
extension WalletReply.State: Codable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case accepted, begun, fenced, fork, behind
  }

  private struct Fork: Codable {
    var head: ChainHead
    var common: ChainHead
  }

  package init(from decoder: any Decoder) throws {
    let (container, key) = try decoder.decodeCase(by: CodingKeys.self)
    switch key {
    case .accepted: self = .accepted(try container.decode(ChainHead.self, forKey: key))
    case .begun: self = .begun(try container.decode(ChainHead.self, forKey: key))
    case .fenced: self = .fenced(try container.decode(ChainHead.self, forKey: key))
    case .fork:
      let fork = try container.decode(Fork.self, forKey: key)
      self = .fork(head: fork.head, common: fork.common)
    case .behind: self = .behind(try container.decode(ChainHead.self, forKey: key))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .accepted(let head): try container.encode(head, forKey: .accepted)
    case .begun(let head): try container.encode(head, forKey: .begun)
    case .fenced(let head): try container.encode(head, forKey: .fenced)
    case .fork(let head, let common): try container.encode(Fork(head: head, common: common), forKey: .fork)
    case .behind(let head): try container.encode(head, forKey: .behind)
    }
  }
}

// The kind is a word; a claim's key is beside it.
extension WalletOperation: Codable {
  private enum CodingKeys: String, CodingKey {
    case id, kind, key, currency, amount, reason, goods, madeAtMilliseconds
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    id = try container.decode(OperationID.self, forKey: .id)
    let word = try container.decode(String.self, forKey: .kind)
    guard let kind = try Kind(word: word, key: { try container.decode(String.self, forKey: .key) }) else {
      throw DecodingError.dataCorruptedError(
        forKey: .kind, in: container, debugDescription: "\"\(word.prefix(40))\" is not a kind of operation")
    }
    self.kind = kind
    currency = try container.decode(String.self, forKey: .currency)
    amount = try container.decode(Int64.self, forKey: .amount)
    reason = try container.decode(String.self, forKey: .reason)
    goods = try container.decodeList(forKey: .goods)
    madeAtMilliseconds = try container.decodeIfPresent(Int64.self, forKey: .madeAtMilliseconds) ?? 0
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encode(kind.rule.word, forKey: .kind)
    try container.encodeIfPresent(kind.key, forKey: .key)
    try container.encode(currency, forKey: .currency)
    try container.encode(amount, forKey: .amount)
    try container.encode(reason, forKey: .reason)
    try container.encodeUnlessEmpty(goods, forKey: .goods)
    if madeAtMilliseconds != 0 { try container.encode(madeAtMilliseconds, forKey: .madeAtMilliseconds) }
  }
}
