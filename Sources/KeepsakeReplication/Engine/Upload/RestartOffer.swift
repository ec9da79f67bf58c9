/// An offer that takes several requests, as it was when the first one was sent.
struct OfferParts: Sendable {
  let id: OfferID
  let groups: [OutboxGroup]
  /// For each part, the number of groups up to its end.
  let ends: [Int]
  /// Parts that the cloud keeps.
  fileprivate(set) var kept = 0
  /// How often the cloud had lost parts that it kept, since the last pause.
  fileprivate var setbacks = 0
}

/// The part to send next, and its groups.
struct PlannedPart: Sendable {
  var part: OfferPart
  var groups: [OutboxGroup]
}

/// An offer of all that a store holds to a cloud that isn't the one it knew: everything as a whole, in as many requests
/// as that takes.
struct RestartOffer: Sendable {
  /// What is offered in parts, from the first part until the last one is accepted.
  private(set) var parts: OfferParts?
  /// A new epoch has begun, and no exchange yet: the exchange waits until the contents that it needs are uploaded, so
  /// that one is enough.
  private(set) var waitsForUploads = false

  /// Begins a new epoch.
  mutating func begin() { self = RestartOffer(waitsForUploads: true) }

  /// Stops waiting: the exchange is sent, or failing contents have delayed it for long enough.
  mutating func stopWaiting() { waitsForUploads = false }

  /// Forgets the parts: what is sent next is another offer.
  mutating func dropParts() { parts = nil }

  /// Returns which of the waiting groups are offered together: all of them, as far as one offer may hold them; after
  /// parts of an offer were sent, its groups.
  ///
  /// - Parameters:
  ///   - waiting: All groups that may be sent, oldest first.
  ///   - known: The records of their versions.
  func groups(of waiting: [OutboxGroup], _ known: [VersionID: VersionRecord], _ limits: RequestLimits) -> [OutboxGroup]
  {
    if let parts { return parts.groups }
    var count = 0
    var bytes = 0
    for number in 0..<ExchangeRules.maximumOfferParts where count < waiting.count {
      let part = limits.fitting(waiting[count...], known)
      bytes += part.reduce(0) { $0 + $1.size(known) }
      guard number == 0 || bytes <= ExchangeRules.maximumOfferBytes else { break }
      count += part.count
    }
    return Array(waiting.prefix(count))
  }

  /// Returns the part of these groups to send next.
  ///
  /// - Returns: Nil if one request takes all of them.
  mutating func nextPart(
    of groups: [OutboxGroup], _ known: [VersionID: VersionRecord], _ limits: RequestLimits,
    using random: inout some RandomNumberGenerator
  ) -> PlannedPart? {
    if parts == nil {
      var ends: [Int] = []
      var end = 0
      while end < groups.count {
        end += limits.fitting(groups[end...], known).count
        ends.append(end)
      }
      guard ends.count > 1 else { return nil }
      parts = OfferParts(id: OfferID(using: &random), groups: groups, ends: ends)
    }
    guard let parts else { return nil }
    let range = (parts.kept == 0 ? 0 : parts.ends[parts.kept - 1])..<parts.ends[parts.kept]
    let part = OfferPart(offer: parts.id, number: parts.kept, isLast: parts.kept == parts.ends.count - 1)
    return PlannedPart(part: part, groups: Array(parts.groups[range]))
  }

  /// Counts a part that was accepted by itself, by a cloud that doesn't know parts.
  mutating func tookPart() { parts?.kept += 1 }

  /// Handles a response that says how many parts the cloud keeps.
  ///
  /// - Parameters:
  ///   - count: The number in the response.
  ///   - part: What was sent; a part of another offer changes nothing.
  ///   - patience: How often the cloud may have lost parts before that counts as lack of room.
  /// - Returns: Whether it has no room for the part at present. A part that was kept and is gone is sent again
  ///   immediately; one that there is no room for, later.
  mutating func kept(_ count: Int, of part: OfferPart?, patience: Int) -> Bool {
    guard let part, let known = parts, part.offer == known.id else { return false }
    parts?.kept = min(max(count, 0), known.ends.count - 1)
    guard count <= part.number else { return false }
    parts?.setbacks += 1
    guard count == part.number || known.setbacks >= patience else { return false }
    parts?.setbacks = 0
    return true
  }
}
