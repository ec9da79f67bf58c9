extension BankState {
  private enum CodingKeys: String, CodingKey {
    case pool, chains, paidClaims
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    pool = try container.decode([String: Int64].self, forKey: .pool)
    chains = try container.decode([ChainID: Chain].self, forKey: .chains)
    paidClaims = Set(try container.decode([String].self, forKey: .paidClaims))
  }

  /// Encodes the state with sorted claims, so that equal states have equal bytes.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(pool, forKey: .pool)
    try container.encode(chains, forKey: .chains)
    try container.encode(paidClaims.sorted(), forKey: .paidClaims)
  }
}
