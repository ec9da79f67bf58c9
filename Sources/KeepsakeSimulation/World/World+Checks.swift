import Foundation
import KeepsakeReplication

// What must always hold, checked as it happens.
extension World {
  func check(_ index: Int, after effects: [EngineEffect]) {
    checkRetreats(index)
    var shown = false
    for case .notify(let notification) in effects {
      switch notification {
      case .slots, .cells: shown = true
      default: break
      }
    }
    if shown { checkGroups(index) }
    // A bank that was restored from a backup may know less of a chain's rights than the chain has used.
    if !cloudWasRestored, let wallet = devices[index].storage.wallet() {
      for currency in wallet.totals.keys.sorted() where wallet.totals[currency].map({ $0.rights < 0 }) == true {
        violation("device \(index) has rights below zero in \(currency)")
      }
    }
  }

  /// No value may ever go backwards.
  func checkRetreats(_ index: Int) {
    if let key = devices[index].storage.retreats.first { violation("device \(index) let \(key) go backwards") }
  }

  /// Another device's checkpoint must be seen as a whole: both its save and its value, or neither.
  private func checkGroups(_ index: Int) {
    // A refusal splits a group, visibly.
    guard swarm.cloudFillOdds == 0 else { return }
    let storage = devices[index].storage
    var elements: Set<VersionID> = []
    if case .union(let values)? = storage.cell(Self.elements)?.value {
      for case .string(let text) in values {
        if let id = VersionID(text) { elements.insert(id) }
      }
    }
    let isKnown = { (id: VersionID) in storage.version(id) != nil || storage.isCovered(id) }
    for id in elements.sorted() where !devices[index].checkedElements.contains(id) {
      guard model.versions[id]?.mayBeGone == false else { continue }
      if !isKnown(id), !isReplaced(id, among: isKnown) {
        violation("device \(index) shows the value of a checkpoint without its save \(short(id))")
      }
      devices[index].checkedElements.insert(id)
    }
    for id in storage.allVersions() where !elements.contains(id) {
      guard let made = model.versions[id], made.paired, !made.mayBeGone else { continue }
      violation("device \(index) shows the save \(short(id)) without the value of its checkpoint")
    }
  }

  /// Whether a later save, made by games that had seen `id`, meets the condition.
  func isReplaced(_ id: VersionID, among condition: (VersionID) -> Bool) -> Bool {
    var open = model.successors[id] ?? []
    var reached = Set(open)
    while let next = open.popLast() {
      if condition(next) { return true }
      for later in model.successors[next] ?? [] where reached.insert(later).inserted { open.append(later) }
    }
    return false
  }

  /// A device that is reported to have a save must have it: all that came with its last report, or everything at rest.
  /// Not checked for a device that was rolled back and hasn't reported since, which the cloud can't know.
  func checkSeen(by index: Int, after seq: UInt64 = 0) throws {
    guard words[index]?.era == devices[index].era else { return }
    let storage = devices[index].storage
    let reached = cloud.reached()[Device.id(index)] ?? 0
    let records = cloud.changes(after: seq, limit: .max).prefix { $0.seq <= reached }.compactMap { change in
      if case .version(let record) = change.item { record } else { nil }
    }
    guard !records.isEmpty else { return }
    let holders = try CloudAcceptance.devices(holding: records.map(\.id), in: cloud)
    for record in records where holders[record.id]?.contains(Device.id(index)) == true {
      report.statistics.seen += 1
      if storage.isCovered(record.id) { continue }
      guard let version = storage.version(record.id) else {
        violation("the cloud lists device \(index) as having \(short(record.id)), which it never saw")
        continue
      }
      // Of a save that the game leaves in the cloud, the device has only the record, on purpose.
      for hash in version.record.contents where !storage.hasContent(hash) && !storage.isNotDownloaded(record) {
        violation("the cloud lists device \(index) as having \(short(record.id)), of which it has only the record")
      }
    }
  }

  /// Notes that the cloud has seen a device go back: by a request that arrives before any response has since it was
  /// rolled back, after a report from before. It is told again until a response arrives, and confirms it, whatever else
  /// happens to it, unless it is rolled back once more, or the cloud is restored. Once it has got a response, a request
  /// with such a cursor may be a late one, whose response nobody gets.
  func noteSetBack(
    _ request: ExchangeRequest, _ response: ExchangeResponse, of index: Int, _ era: Int, after reached: UInt64
  ) {
    let cursor = request.cursor
    guard era > 0, era == devices[index].era, !devices[index].wasAnswered else { return }
    defer { devices[index].arrivedCursor = max(devices[index].arrivedCursor, cursor.seq) }
    let isOfHistory = !response.restart || response.isBehind
    guard isOfHistory, cursor.ahead == nil, cursor.seq > 0, cursor.seq >= devices[index].arrivedCursor else { return }
    if cursor.seq < reached { devices[index].awaitsMark = true }
  }

  /// A device whose store went back below what it had reported must be marked at rest, and no device that never did.
  func checkSetBacks() {
    for index in devices.indices {
      let mark = cloud.setBacks(of: Device.id(index)).mark
      if mark == nil, devices[index].awaitsMark { violation("device \(index) went back, but the cloud doesn't know") }
      if let mark, !devices[index].wasSetBack {
        violation("the cloud has device \(index) go back from \(mark.from) to \(mark.to), which it never did")
      }
    }
  }

  /// Everything that the cloud shows must be complete, and its money must add up.
  func checkCloud(after request: ExchangeRequest) {
    for record in request.versions where !cloud.isCovered(record.id) && cloud.version(record.id) != nil {
      for hash in record.contents {
        var next: ContentHash? = hash
        var steps = 0
        while let hash = next {
          guard let content = cloud.content(hash) else {
            violation("the cloud shows \(short(record.id)) without its contents or their bases")
            break
          }
          next = content.base
          steps += 1
          // Two devices may send the same content in different encodings, which makes a chain longer than either knows.
          if steps > 4 * (engineOptions.maximumDepth + 2) {
            violation("a content in the cloud has more than \(steps) bases")
            break
          }
        }
      }
    }
    if request.wallet != nil { checkBank() }
  }

  func checkBank() { checkBank(of: cloud) }

  func checkBank(of cloud: MemoryContainer) {
    let bank = Bank(cloud.bank())
    var held: [String: Int64] = bank.state.pool
    for (currency, amount) in held where amount < 0 {
      violation("the bank's pool of \(currency) is below zero: \(amount)")
    }
    for (id, chain) in bank.state.chains {
      for (currency, totals) in chain.totals {
        if totals.rights < 0 { violation("the chain \(short(id)) has rights below zero in \(currency)") }
        held[currency, default: 0] += totals.rights
      }
    }
    var made: [String: Int64] = [:]
    for (verdict, operation, _) in cloud.decisions.values where verdict == .accepted {
      if operation.effect == .claim { made[operation.currency, default: 0] += operation.amount }
      for movement in operation.movements { made[movement.currency, default: 0] += movement.earned - movement.spent }
    }
    // What is owed wasn't there to be charged.
    for sums in [cloud.orders.sums, bank.state.debts ?? [:], bank.state.missing ?? [:]] { made.merge(sums) { $0 + $1 } }
    for voucher in cloud.vouchers.values {
      made.merge(voucher.amounts.mapValues { -$0 }) { $0 + $1 }
    }
    for currency in Set(held.keys).union(made.keys).sorted()
    where held[currency, default: 0] != made[currency, default: 0] {
      violation(
        """
        \(currency): the operations add up to \(made[currency, default: 0]), but the bank has \
        \(held[currency, default: 0])
        """)
    }
    if let twice = cloud.decidedTwice.first { violation("the operation \(twice) was decided twice") }
  }
}
