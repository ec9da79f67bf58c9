import KeepsakeReplication
import KeepsakeStore

/// Data that exists on this device and in no cloud.
///
/// ```swift
/// do { try await game.signOut(forgetting: true) } catch let error as GameDataError {
///   if case .wouldBeLost(let data) = error.code { ask("This is only on this device:", data.saves) }
/// }
/// ```
///
/// If the cloud refuses this device, everything on the device counts, because the cloud may not have it any more.
///
/// Doesn't include what is never sent to a cloud: older versions of saves, preferences that aren't synced, and scores
/// other than a player's best.
public struct UnsentData: Sendable, Hashable {
  /// Slots that are local, or whose newest save isn't known to be in the cloud, sorted.
  public var saves: [String] = []
  /// Values that aren't known to be in the cloud, as `progress/level`, sorted.
  public var values: [String] = []
  /// Currencies with operations that no bank knows, or with money on its way: to an account that has begun to adopt, or
  /// from the bank of a player that the device belonged to before. Sorted.
  public var currencies: [String] = []
  /// Names of tracked files that are local, or whose newest version isn't known to be in the cloud, sorted.
  public var files: [String] = []
  /// Whether the game has tables of its own (`GameData.records`), which are never sent.
  public var hasRecords = false

  /// Creates a value with nothing unsent.
  public init() {}

  /// Whether nothing is unsent.
  public var isEmpty: Bool { self == UnsentData() }
}

extension UnsentData: CustomStringConvertible {
  /// Text such as `saves main, cave; values progress/level; tables`.
  public var description: String {
    let lists = [("saves", saves), ("values", values), ("money", currencies), ("files", files)]
    var parts = lists.filter { !$0.1.isEmpty }.map { "\($0.0) \($0.1.prefix(10).joined(separator: ", "))" }
    if hasRecords { parts.append("tables") }
    return parts.joined(separator: "; ")
  }
}

extension UnsentData {
  /// - Parameter everything: Whether to include what the cloud once had, for a cloud that refuses this device.
  init(_ transaction: StoreTransaction, hasRecords: Bool, everything: Bool = false) throws {
    self.hasRecords = hasRecords
    var (slots, keys, money): (Set<SlotKey>, Set<String>, Set<String>) = ([], [], [])
    for group in try transaction.outbox(limit: transaction.outboxCount()) {
      keys.formUnion(group.cells.map(\.key.description))
      for id in group.versions {
        if let record = try transaction.version(id)?.record { slots.insert(record.key) }
      }
    }
    let wallet = try transaction.wallet().map { KeepsakeReplication.Wallet($0) }
    if let wallet { money.formUnion(wallet.unreported) }
    // This money has left the wallet and isn't in another one yet.
    if let underway = try transaction.adoptionNote().underway { money.formUnion(underway.currencies) }
    // Nor is what the banks of players before haven't settled.
    for former in try transaction.formerWallets() {
      money.formUnion(former.currencies.filter { former.pending($0) != 0 })
    }
    if try everything || transaction.facts().isRefused {
      for (key, heads) in try transaction.headVersionsOfAllSlots() where !key.isLocal {
        if heads.contains(where: { !$0.version.record.tombstone }) { slots.insert(key) }
      }
      keys.formUnion(try transaction.cells(in: nil).map(\.key.description))
      if let wallet { money.formUnion(wallet.currencies.filter { wallet.total($0) != 0 || wallet.pending($0) != 0 }) }
    }
    for (key, heads) in try transaction.headVersionsOfAllSlots() where key.isLocal {
      if heads.contains(where: { !$0.version.record.tombstone }) { slots.insert(key.synced) }
    }
    saves = slots.filter { !$0.isFile }.map(\.name).sorted()
    files = slots.compactMap(\.fileName).sorted()
    (values, currencies) = (keys.sorted(), money.sorted())
  }
}
