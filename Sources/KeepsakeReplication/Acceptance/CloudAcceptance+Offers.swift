// Handles an offer that takes several requests: its parts are kept, and accepted in one transaction when the last one
// arrives.
extension CloudAcceptance {
  /// What a request adds up to.
  enum Gathered {
    /// All of it is here.
    case whole(ExchangeRequest)
    /// This many parts, from the first on, are kept; the rest has still to arrive.
    case held(Int)
  }

  /// Keeps a part, or combines the last one with those before it. A repeated part changes nothing; one that arrives too
  /// early is ignored, and the response says where to continue.
  static func gather(
    _ request: ExchangeRequest, now: Int64, in storage: inout some ContainerStorage
  ) throws -> Gathered {
    guard let part = request.part, !storage.faults.takesPartsAsTheyCome else { return .whole(request) }
    let held = try storage.heldOffers()
    let here = held.first { $0.id == part.offer }?.parts ?? 0
    if part.isLast {
      guard part.number <= here else { return .held(here) }
      let whole = request.joined(with: Array(try storage.items(of: part.offer).prefix(part.number)))
      try storage.need(reads(ofItemsIn: whole))
      return .whole(whole)
    }
    guard part.number == here else { return .held(here) }
    let items = OfferItems(cells: request.cells, versions: request.versions)
    guard try makeRoom(for: items.size, of: part.offer, held, now, in: &storage) else { return .held(here) }
    try storage.hold(items, as: part, now: now)
    return .held(here + 1)
  }

  /// Returns whether one more part may be kept. Offers that nobody continues make room for it, the oldest first; others
  /// don't, or two devices could keep each other from ever finishing.
  private static func makeRoom(
    for bytes: Int, of offer: OfferID, _ held: [HeldOffer], _ now: Int64, in storage: inout some ContainerStorage
  ) throws -> Bool {
    guard bytes + (held.first { $0.id == offer }?.bytes ?? 0) <= ExchangeRules.maximumOfferBytes else { return false }
    var others = held.filter { $0.id != offer }.sorted { $0.touchedMilliseconds < $1.touchedMilliseconds }
    // A clock that was set back counts as time elapsed.
    let age = { (offer: HeldOffer) in
      offer.touchedMilliseconds > now
        ? Int64.max : now.subtractingReportingOverflow(offer.touchedMilliseconds).partialValue
    }
    func isTooMuch() -> Bool {
      let all = held.first { $0.id == offer }?.bytes ?? 0
      return others.count >= ExchangeRules.maximumOffers
        || others.reduce(all + bytes) { $0 + $1.bytes } > ExchangeRules.maximumHeldBytes
    }
    while let oldest = others.first {
      let isOver = age(oldest) >= ExchangeRules.offerLifetimeMilliseconds
      guard isOver || (isTooMuch() && age(oldest) >= ExchangeRules.offerIdleMilliseconds) else { break }
      try storage.dropOffer(oldest.id)
      others.removeFirst()
    }
    return !isTooMuch()
  }

  /// Drops the parts of an offer that was accepted or refused, because what is sent then is another offer. An offer
  /// that lacks contents continues when they are here.
  static func release(
    _ part: OfferPart?, after outcome: ExchangeOutcome?, in storage: inout some ContainerStorage
  ) throws {
    guard let part else { return }
    switch outcome {
    case .accepted, .refused: try storage.dropOffer(part.offer)
    case .missing, .held, nil: break
    }
  }
}
