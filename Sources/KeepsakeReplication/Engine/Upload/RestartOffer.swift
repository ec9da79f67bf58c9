/// An offer that takes several requests, as it was when the first one was sent.
struct OfferParts: Sendable {
  let id: OfferID
  let groups: [OutboxGroup]
  /// How many groups there are in the parts up to each one.
  let ends: [Int]
  /// Parts that the cloud keeps.
  fileprivate(set) var kept = 0
  /// Times that it kept fewer than it had.
  fileprivate var setbacks = 0
}

/// The part that is sent now, and what is in it.
struct PlannedPart: Sendable {
  var part: OfferPart
  var groups: [OutboxGroup]
}

/// All that a store holds, on its way to a cloud that isn't the one it knew: all at once, in as many requests as that
/// takes.
struct RestartOffer: Sendable {
  /// What is offered in parts, from the first one until the last one is taken.
  private(set) var parts: OfferParts?
  /// A new epoch has begun, and no exchange yet: it waits until the contents that it needs are uploaded, to be the only
  /// one.
  private(set) var waitsForUploads = false

  /// A new epoch begins.
  mutating func begin() { self = RestartOffer(waitsForUploads: true) }

  /// The exchange is sent, or contents that fail have held it up for long enough.
  mutating func stopWaiting() { waitsForUploads = false }

  /// What goes next is another offer.
  mutating func dropParts() { parts = nil }

  /// What of all that waits is offered together: everything, as far as one offer may hold it; once parts of it were
  /// sent, those.
  ///
  /// - Parameters:
  ///   - waiting: All groups that may be sent, oldest first.
  ///   - known: The records of their versions.
  func groups(of waiting: [OutboxGroup], _ known: [VersionID: VersionRecord], _ limits: RequestLimits) -> [OutboxGroup] {
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

  /// The part of these groups that is sent now.
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

  /// A cloud that doesn't know of parts took one by itself.
  mutating func tookPart() { parts?.kept += 1 }

  /// The cloud keeps so many parts.
  ///
  /// - Parameters:
  ///   - count: What it says.
  ///   - part: What was sent; one of another offer changes nothing.
  ///   - patience: How often in a row it may keep fewer than it had.
  /// - Returns: Whether it has no room for the part now. One that was kept and is gone is sent again at once; what
  ///   there is no room for, later.
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
