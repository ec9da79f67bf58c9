// What a request shows of what its decision is going to read.
extension CloudAcceptance {
  /// Returns what handling a request reads, as far as the request shows it.
  ///
  /// - Parameters:
  ///   - device: The requesting device; nil in a cloud that knows no devices.
  ///   - hasQuota: Whether the player may keep only so much.
  ///   - showsStep: Whether ``step(since:in:)`` is asked for afterwards.
  /// - Throws: ``ExchangeError`` for a request that no correct device sends: nothing is loaded for it.
  package static func reads(
    of request: ExchangeRequest, from device: DeviceID?, hasQuota: Bool, showsStep: Bool = false
  ) throws -> ReadSet {
    try check(request)
    let isPart = request.part.map { !$0.isLast } ?? false
    var reads = isPart ? ReadSet() : reads(ofItemsIn: request)
    reads.device = device
    if request.cursor.seq > 0 { reads.marks.insert(request.cursor.seq) }
    if let ahead = request.cursor.ahead { reads.marks.insert(ahead.seq) }
    reads.changes = ReadSet.Changes(
      after: request.cursor.seq, count: min(request.limit, ExchangeRules.maximumChanges) + 1,
      bytes: room(after: request.cursor))
    if let part = request.part {
      reads.offers = true
      if part.isLast { reads.parts = [part.offer] }
    }
    reads.contents.formUnion(request.damaged)
    reads.suspects = true
    reads.used = hasQuota
    // What the device has sent isn't in the response, unless the cloud has changed it.
    let here = Set(request.contents.map(\.hash))
    for record in request.versions where showsStep || record.provisional {
      reads.frames.formUnion(record.contents.filter { !here.contains($0) })
    }
    if let offer = request.wallet { reads.bank = self.reads(of: offer) }
    reads.chain = request.wallet?.chain
    return reads
  }

  /// Returns what accepting the items of a request reads.
  static func reads(ofItemsIn request: ExchangeRequest) -> ReadSet {
    var reads = ReadSet()
    reads.cells = Set(request.cells.map(\.key))
    var covered: Set<VersionID> = []
    for record in request.versions {
      reads.versions.insert(record.id)
      reads.slots.insert(ExactText(record.slot))
      covered.formUnion(record.covers)
      if record.tombstone { reads.rooms.insert(ExactText(record.slot)) }
    }
    reads.slotsOfVersions = covered.subtracting(reads.versions)
    for content in request.contents {
      reads.contents.insert(content.hash)
      if let base = content.base { reads.contents.insert(base) }
    }
    for record in request.versions { reads.contents.formUnion(record.contents) }
    return reads
  }

  /// Returns what a bank reads to answer an offer.
  package static func reads(of offer: WalletOffer) -> BankReads {
    var reads = BankReads()
    reads.state = true
    let operations = offer.operations + offer.late
    let settled = offer.settled?.operations ?? []
    reads.decisions = Set((operations + settled).map(\.id)).union(offer.waiting)
    reads.claims = Set(operations.compactMap(\.kind.key).map(ExactText.init))
    reads.goods = Set(operations.flatMap(\.goods).map(ExactText.init))
    reads.goodsAfter = BankReads.Range(
      after: offer.goods, limit: WalletGoods.maximumChanges + reads.goods.count)
    reads.ordersAfter = BankReads.Range(after: offer.orders, limit: NumberedOrder.maximumListed)
    reads.closedChains = Set([offer.chain] + offer.formers)
    if offer.leaving != nil {
      reads.vouchers = [offer.chain]
      reads.payments = WalletVoucher.maximumClaims
    }
    for voucher in offer.vouchers {
      reads.paidVouchers.insert(BankReads.Voucher(bank: voucher.bank, chain: voucher.chain))
      for currency in voucher.amounts.keys {
        reads.decisions.insert(voucher.orderID(for: currency))
        reads.orders.insert(voucher.orderID(for: currency))
      }
      for claim in voucher.claims {
        reads.claims.insert(ExactText(claim.key))
        reads.vouchedClaims.insert(BankReads.VouchedClaim(bank: voucher.bank, key: ExactText(claim.key)))
      }
    }
    return reads
  }

  /// Returns what a bank reads to perform an order.
  package static func reads(of order: BankOrder) -> BankReads {
    var reads = BankReads()
    reads.state = true
    reads.orders = [order.id]
    reads.decisions = Set([order.id, order.purchase].compactMap(\.self))
    reads.operations = Set([order.purchase].compactMap(\.self))
    reads.goods = Set(order.goods.map(ExactText.init))
    return reads
  }

  /// Bytes of cells and records in a response to a device with this cursor.
  static func room(after cursor: Cursor) -> Int {
    cursor.seq == 0 || cursor.ahead != nil ? catchUpBytes : answerBytes
  }
}
