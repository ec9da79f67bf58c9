extension ExchangeRequest: Codable {
  private enum CodingKeys: String, CodingKey {
    case protocolVersion, cursor, cells, versions, contents, wallet, limit, damaged, part, staged, setBack
  }

  /// Decodes a request.
  ///
  /// - Throws: `ExchangeError.unsupportedProtocol` before anything else is read, because another protocol may have
  ///   other fields; or a `DecodingError`.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    protocolVersion = try container.decode(Int.self, forKey: .protocolVersion)
    guard protocolVersion == Self.currentProtocol else { throw ExchangeError.unsupportedProtocol(protocolVersion) }
    cursor = try container.decode(Cursor.self, forKey: .cursor)
    cells = try container.decodeList(forKey: .cells)
    versions = try container.decodeList(forKey: .versions)
    contents = try container.decodeList(forKey: .contents)
    wallet = try container.decodeIfPresent(WalletOffer.self, forKey: .wallet)
    limit = try container.decode(Int.self, forKey: .limit)
    damaged = try container.decodeList(forKey: .damaged)
    part = try container.decodeIfPresent(OfferPart.self, forKey: .part)
    hasStaged = try container.decodeFlag(forKey: .staged)
    setBack = try container.decodeIfPresent(SetBack.self, forKey: .setBack)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(protocolVersion, forKey: .protocolVersion)
    try container.encode(cursor, forKey: .cursor)
    try container.encodeUnlessEmpty(cells, forKey: .cells)
    try container.encodeUnlessEmpty(versions, forKey: .versions)
    try container.encodeUnlessEmpty(contents, forKey: .contents)
    try container.encodeIfPresent(wallet, forKey: .wallet)
    try container.encode(limit, forKey: .limit)
    try container.encodeUnlessEmpty(damaged, forKey: .damaged)
    try container.encodeIfPresent(part, forKey: .part)
    try container.encodeIfTrue(hasStaged, forKey: .staged)
    try container.encodeIfPresent(setBack, forKey: .setBack)
  }
}

extension ExchangeResponse: Codable {
  private enum CodingKeys: String, CodingKey {
    case outcome, restart, behind, changes, contents, wallet, cursor, more, serverTimeMilliseconds, wanted, quota,
      setBack, setBackMark, readOnly
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    outcome = try container.decodeIfPresent(ExchangeOutcome.self, forKey: .outcome)
    restart = try container.decodeFlag(forKey: .restart)
    isBehind = try container.decodeFlag(forKey: .behind)
    changes = try container.decodeList(forKey: .changes)
    contents = try container.decodeList(forKey: .contents)
    wallet = try container.decodeIfPresent(WalletReply.self, forKey: .wallet)
    cursor = try container.decode(Cursor.self, forKey: .cursor)
    more = try container.decodeFlag(forKey: .more)
    serverTimeMilliseconds = try container.decode(Int64.self, forKey: .serverTimeMilliseconds)
    wanted = try container.decodeList(forKey: .wanted)
    quota = try container.decodeIfPresent(QuotaUse.self, forKey: .quota)
    setBack = try container.decodeIfPresent(SetBack.self, forKey: .setBack)
    setBackMark = try container.decodeIfPresent(SetBackMark.self, forKey: .setBackMark)
    isReadOnly = try container.decodeFlag(forKey: .readOnly)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(outcome, forKey: .outcome)
    try container.encodeIfTrue(restart, forKey: .restart)
    try container.encodeIfTrue(isBehind, forKey: .behind)
    try container.encodeUnlessEmpty(changes, forKey: .changes)
    try container.encodeUnlessEmpty(contents, forKey: .contents)
    try container.encodeIfPresent(wallet, forKey: .wallet)
    try container.encode(cursor, forKey: .cursor)
    try container.encodeIfTrue(more, forKey: .more)
    try container.encode(serverTimeMilliseconds, forKey: .serverTimeMilliseconds)
    try container.encodeUnlessEmpty(wanted, forKey: .wanted)
    try container.encodeIfPresent(quota, forKey: .quota)
    try container.encodeIfPresent(setBack, forKey: .setBack)
    try container.encodeIfPresent(setBackMark, forKey: .setBackMark)
    try container.encodeIfTrue(isReadOnly, forKey: .readOnly)
  }
}

// {"accepted": {"seq": 4}}, {"missing": [hash, ...]}, {"refused": [...]}, {"held": {"parts": 2}}
extension ExchangeOutcome: Codable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case accepted, missing, refused, held
  }

  private struct Accepted: Codable {
    var seq: UInt64
  }

  private struct Held: Codable {
    var parts: Int
  }

  package init(from decoder: any Decoder) throws {
    let (container, key) = try decoder.decodeCase(by: CodingKeys.self)
    switch key {
    case .accepted: self = .accepted(seq: try container.decode(Accepted.self, forKey: key).seq)
    case .missing: self = .missing(try container.decode([ContentHash].self, forKey: key))
    case .refused: self = .refused(try container.decode([Refusal].self, forKey: key))
    case .held: self = .held(parts: try container.decode(Held.self, forKey: key).parts)
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .accepted(let seq): try container.encode(Accepted(seq: seq), forKey: .accepted)
    case .missing(let hashes): try container.encode(hashes, forKey: .missing)
    case .refused(let refusals): try container.encode(refusals, forKey: .refused)
    case .held(let parts): try container.encode(Held(parts: parts), forKey: .held)
    }
  }
}

// {"seq": 7, "cell": {...}}, {"seq": 8, "version": {...}}
extension CloudChange: Codable {
  private enum CodingKeys: String, CodingKey {
    case seq
  }

  private enum ItemKeys: String, CodingKey, CaseIterable {
    case cell, version
  }

  package init(from decoder: any Decoder) throws {
    seq = try decoder.container(keyedBy: CodingKeys.self).decode(UInt64.self, forKey: .seq)
    let (container, key) = try decoder.decodeCase(by: ItemKeys.self)
    switch key {
    case .cell: item = .cell(try container.decode(CellUpdate.self, forKey: key))
    case .version: item = .version(try container.decode(VersionRecord.self, forKey: key))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(seq, forKey: .seq)
    var items = encoder.container(keyedBy: ItemKeys.self)
    switch item {
    case .cell(let update): try items.encode(update, forKey: .cell)
    case .version(let record): try items.encode(record, forKey: .version)
    }
  }
}

// {"seq": 7}, {"seq": 7, "unknown": {...}}, {"seq": 7, "after": {...}, "cursor": {...}, "changes": [...], "contents":
// [...]}
extension CloudEvent: Codable {
  private enum CodingKeys: String, CodingKey {
    case seq, after, cursor, changes, contents, unknown
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    seq = try container.decode(UInt64.self, forKey: .seq)
    unknown = try container.decodeIfPresent(Cursor.self, forKey: .unknown)
    do {
      guard let after = try container.decodeIfPresent(Cursor.self, forKey: .after) else { return }
      step = Step(
        after: after, cursor: try container.decode(Cursor.self, forKey: .cursor),
        changes: try container.decodeList(forKey: .changes),
        contents: try container.decodeList(forKey: .contents))
    } catch is DecodingError {
      // A step of a later cloud may be unreadable here. An exchange fetches it, and reports what is wrong with it.
      step = nil
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(seq, forKey: .seq)
    try container.encodeIfPresent(unknown, forKey: .unknown)
    guard let step else { return }
    try container.encode(step.after, forKey: .after)
    try container.encode(step.cursor, forKey: .cursor)
    try container.encodeUnlessEmpty(step.changes, forKey: .changes)
    try container.encodeUnlessEmpty(step.contents, forKey: .contents)
  }
}
