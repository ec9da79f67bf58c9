#if Cloud
import Foundation
import KeepsakeReplication

/// One thing of which a backend is told, as it is kept until the backend has it.
struct WebhookEvent: Sendable {
  var kind: WebhookKind
  /// A JSON object.
  var data: Data

  private init(_ kind: WebhookKind, _ data: some Encodable) throws {
    self.kind = kind
    self.data = try EncodedRows.encode(data)
  }

  // MARK: Kinds

  private struct Save: Encodable {
    var slot: String
    var version: VersionID
    /// Whether nothing has replaced it.
    var head: Bool
    var tombstone: Bool
    var bytes: Int
    var savedAtMilliseconds: Int64
  }
  private struct Conflict: Encodable {
    var slot: String
    var versions: Int
    var sinceMilliseconds: Int64
  }
  private struct Purchase: Encodable {
    var order: OperationID
    var what: String
    var currency: String
    var amount: Int64
    /// As devices show it, after everything that was decided together; nil if that isn't known.
    var balance: Int64?
  }
  private struct Device: Encodable {
    var device: DeviceID
    /// Of a removed device: whether it has removed itself.
    var leaving: Bool?
  }
  private struct SetBack: Encodable {
    var device: DeviceID
    /// How often it has happened since the device was last cleared.
    var count: Int
    /// The seqs of the cursors before and after.
    var from: UInt64
    var to: UInt64
  }
  private struct Deleted: Encodable {
    var playerSHA256: ContentHash?
  }

  static func saveArrived(_ record: VersionRecord, isHead: Bool) throws -> Self {
    try Self(
      .saveArrived,
      Save(
        slot: record.slot, version: record.id, head: isHead, tombstone: record.tombstone, bytes: record.length,
        savedAtMilliseconds: record.savedAtMilliseconds))
  }

  static func conflictOpen(slot: String, versions: Int, since: Int64) throws -> Self {
    try Self(.conflictOpen, Conflict(slot: slot, versions: versions, sinceMilliseconds: since))
  }

  /// A spend that counts; nil for any other operation.
  static func purchaseSettled(_ decision: WriteSet.Decision, _ balances: [String: Int64]?) throws -> Self? {
    let operation = decision.operation
    guard decision.verdict.counts, case .spend = operation.kind else { return nil }
    return try Self(
      .purchaseSettled,
      Purchase(
        order: operation.id, what: "spend", currency: operation.currency, amount: operation.amount,
        balance: balances.map { $0[operation.currency] ?? 0 }))
  }

  /// An order that somebody has given; nil for one of the bank itself.
  static func purchaseSettled(_ order: BankOrder, _ balances: [String: Int64]?) throws -> Self? {
    let what: String
    switch order.kind {
    case .grant: what = order.receipt == nil ? "grant" : "receipt"
    case .charge: what = "charge"
    case .refund: what = "refund"
    case .voucher, .shortfall: return nil
    }
    return try Self(
      .purchaseSettled,
      Purchase(
        order: order.id, what: what, currency: order.currency, amount: order.amount,
        balance: balances.map { $0[order.currency] ?? 0 }))
  }

  static func deviceAdded(_ device: DeviceID) throws -> Self { try Self(.deviceAdded, Device(device: device)) }

  static func deviceRemoved(_ device: DeviceID, isLeaving: Bool) throws -> Self {
    try Self(.deviceRemoved, Device(device: device, leaving: isLeaving))
  }

  static func deviceSetBack(_ device: DeviceID, _ mark: DeviceSetBacks.Mark) throws -> Self {
    try Self(.deviceSetBack, SetBack(device: device, count: mark.count, from: mark.from, to: mark.to))
  }

  static func playerDeleted(_ player: PlayerID?) throws -> Self {
    try Self(.playerDeleted, Deleted(playerSHA256: player.map(AuditEntry.hash)))
  }
}

/// What backends are told of one commit, encoded before the writer's turn comes.
struct WebhookEvents: Sendable {
  /// Of versions that the commit may bring; those that were here already bring none.
  var saves: [VersionID: WebhookEvent] = [:]
  var purchases: [WebhookEvent] = []
  var removed: WebhookEvent?
  /// Of the requesting device, if it isn't known yet.
  var added: WebhookEvent?
  /// Of the requesting device, if its store went back.
  var setBack: WebhookEvent?

  /// - Parameter wants: Whether any endpoint takes events of a kind.
  init(_ writes: WriteSet, wants: (WebhookKind) -> Bool) throws {
    if wants(.saveArrived) {
      for (id, written) in writes.versions {
        saves[id] = try .saveArrived(
          written.version.record, isHead: written.isHead && !writes.covered.contains(id))
      }
    }
    if wants(.purchaseSettled), !writes.decisions.isEmpty || !writes.orders.isEmpty {
      let balances = writes.bank.map { Bank($0).shownBalances() }
      var seen: Set<OperationID> = []
      for decision in writes.decisions {
        guard let event = try WebhookEvent.purchaseSettled(decision, balances),
          seen.insert(decision.operation.id).inserted
        else { continue }
        purchases.append(event)
      }
      purchases += try writes.orders.compactMap { try .purchaseSettled($0.order, balances) }
    }
    if wants(.deviceRemoved), let retired = writes.retired {
      removed = try .deviceRemoved(retired.device, isLeaving: retired.isLeaving)
    }
    if wants(.deviceSetBack), let device = writes.device, device.isSetBack, let mark = device.setBacks?.mark {
      setBack = try .deviceSetBack(device.id, mark)
    }
    if wants(.deviceAdded), let device = writes.device, device.visit != nil { added = try .deviceAdded(device.id) }
  }
}
#endif
