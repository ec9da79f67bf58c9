import KeepsakeReplication
import KeepsakeStore

/// What is on this device and in no cloud.
///
///     do { try await game.signOut(forgetting: true) } catch let error as GameDataError {
///       if case .wouldBeLost(let data) = error.code { ask("This is only on this device:", data.saves) }
///     }
///
/// Where the cloud refuses this device, because it was removed or everything was deleted there, all that the device has counts: nobody can tell whether the
/// cloud still has it.
///
/// Not counted is what a cloud never gets: older versions of saves, preferences that aren't synced, and scores that are no player's best.
public struct UnsentData: Sendable, Hashable {
  /// Slots whose newest save isn't certain in the cloud, or stays on this device, sorted.
  public var saves: [String] = []
  /// Values of which the same is true, as `progress/level`, sorted.
  public var values: [String] = []
  /// Currencies with operations that no bank knows, or with money on its way to an account that began to adopt, sorted.
  public var currencies: [String] = []
  /// Names of tracked files of which the same is true, sorted.
  public var files: [String] = []
  /// The game has tables of its own (`GameData.records`), which are only here.
  public var hasRecords = false

  public init() {}

  /// Whether there is nothing of the kind.
  public var isEmpty: Bool { self == UnsentData() }
}

extension UnsentData: CustomStringConvertible {
  /// As in `saves main, cave; values progress/level; tables`.
  public var description: String {
    let lists = [("saves", saves), ("values", values), ("money", currencies), ("files", files)]
    var parts = lists.filter { !$0.1.isEmpty }.map { "\($0.0) \($0.1.prefix(10).joined(separator: ", "))" }
    if hasRecords { parts.append("tables") }
    return parts.joined(separator: "; ")
  }
}

extension UnsentData {
  /// - Parameter everything: Whether to count also what the cloud once had, as where it refuses the device.
  init(_ transaction: StoreTransaction, hasRecords: Bool, everything: Bool = false) throws {
    self.hasRecords = hasRecords
    var (slots, keys, money): (Set<String>, Set<String>, Set<String>) = ([], [], [])
    for group in try transaction.outbox(limit: transaction.outboxCount()) {
      keys.formUnion(group.cells.map(\.key.description))
      for id in group.versions {
        if let record = try transaction.version(id)?.record { slots.insert(record.slot) }
      }
    }
    let wallet = try transaction.wallet().map { KeepsakeReplication.Wallet($0) }
    if let wallet { money.formUnion(wallet.unreported) }
    // It has left the wallet, and stands nowhere else yet.
    if let underway = try transaction.adoptionNote().underway { money.formUnion(underway.parcel.operations.map(\.currency)) }
    if try everything || transaction.facts().isRefused {
      for (slot, heads) in try transaction.headVersionsOfAllSlots() where !LocalSlot.contains(slot) {
        if heads.contains(where: { !$0.version.record.tombstone }) { slots.insert(slot) }
      }
      keys.formUnion(try transaction.cells(in: nil).map(\.key.description))
      if let wallet { money.formUnion(wallet.currencies.filter { wallet.total($0) != 0 || wallet.pending($0) != 0 }) }
    }
    for (place, heads) in try transaction.headVersionsOfAllSlots() where LocalSlot.contains(place) {
      if heads.contains(where: { !$0.version.record.tombstone }) { slots.insert(LocalSlot.slot(at: place)) }
    }
    saves = slots.filter { !FileSlot.contains($0) }.sorted()
    files = slots.compactMap(FileSlot.name).sorted()
    (values, currencies) = (keys.sorted(), money.sorted())
  }
}
