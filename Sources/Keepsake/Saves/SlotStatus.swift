public import Foundation
public import KeepsakeArchive
import KeepsakeReplication
import KeepsakeStore

/// How far what stands in a slot has come, and what is on its way there.
public struct SlotStatus: Sendable, Hashable {
  /// How far it has come.
  public enum State: Sendable, Hashable {
    /// Nothing was ever saved here, as far as this device knows.
    case empty
    /// On this device only, for this reason.
    case local(LocalReason)
    /// Durable here, and waits for its turn, for the network, or for the player's switch.
    case queued
    /// A large save on its way to the cloud; from 0 to 1.
    case uploading(fraction: Double)
    /// All of it is in the cloud.
    case stored
    /// The cloud doesn't take it; everything else goes on.
    case refused(CloudStatus.Refusal)
  }

  /// Why a save is on this device only.
  public enum LocalReason: Sendable, Hashable {
    /// The data were never connected to a cloud.
    case neverConnected
    /// It is made to stay here (`SaveSlots.keepLocal`).
    case kept
  }

  /// A save of another device that the game doesn't see yet.
  public enum Arrival: Sendable, Hashable {
    /// It is known of, and not all of it is here: it waits for its turn, or for the network.
    case announced
    /// On its way; from 0 to 1.
    case downloading(fraction: Double)
    /// All of it is here, and `Cloud.delivery` keeps it back.
    case arrived
  }

  /// The slot's name.
  public let slot: String
  /// How far what stands here has come; of a conflict, the side that is least far. A delete counts as well.
  public let state: State
  /// What comes; nil if nothing does.
  public let arrival: Arrival?
  /// What stands here can be loaded without asking the cloud; false where `Cloud.downloads` left it there.
  public let isDownloaded: Bool
  /// Of a slot that stays here: what other devices have saved under its name since, as this device knows it. Nil if that is nothing.
  public let elsewhere: Version?
  /// When the cloud last answered this device, by its clock: whether anything newer exists elsewhere was known then. Nil if it never did.
  public let lastFetched: Date?
  /// The player's other devices that have what stands here, as the cloud said when it was last asked; nil where it wasn't asked about this save, or doesn't know.
  ///
  /// It is asked while somebody follows `SaveSlots.statusUpdates(of:)`: at once, when the save has come to the cloud, and then every half minute; and by
  /// `SaveSlots.seenBy(_:)`, which says what being listed means. Not kept over a restart.
  public let seenBy: [CloudDevice]?
}

/// The status of a slot, live: now, and each time that it changes. Who is slow gets the newest.
///
/// While it is followed the cloud is asked every half minute who has seen the save (`SlotStatus.seenBy`): one small request for all slots that are followed, none while
/// the cloud can't be reached. Let go of the loop to end that.
///
/// Ends when the game's data is closed or the task is cancelled. Throws `StoreError` if the store can't be read.
public struct SlotStatusUpdates: AsyncSequence, Sendable {
  public typealias Element = SlotStatus
  public typealias Failure = any Error

  let saves: SaveSlots
  let slot: String

  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// One loop's place. Looks into the store on the actor that asks.
  public struct Iterator: AsyncIteratorProtocol {
    private let updates: SlotStatusUpdates
    private var ticks: AsyncStream<Void>.Iterator
    private var emitted: SlotStatus?
    private let look: SeenByCache.Look

    init(_ updates: SlotStatusUpdates) {
      self.updates = updates
      let core = updates.saves.core
      ticks = core.statusTicks.stream().makeAsyncIterator()
      look = core.seen.look(at: updates.slot)
      core.statusTicks.send(())
    }

    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> SlotStatus? {
      while true {
        if emitted != nil {
          guard await ticks.next(isolation: actor) != nil else { return nil }
        }
        let (saves, slot) = (updates.saves, updates.slot)
        guard let status = try saves.core.whileOpen({ try saves.durableStatus(of: slot) }) else { return nil }
        guard status != emitted else { continue }
        emitted = status
        return status
      }
    }
  }
}

extension SaveSlots {
  /// How far what stands in the slot has come.
  ///
  ///     switch try game.saves.status(of: .main).state {
  ///     case .stored: icon = .cloud
  ///     case .uploading(let fraction): icon = .arrow(fraction)
  ///     case .refused(let refusal): icon = .warning(refusal.message)
  ///     case .local(.kept): icon = .pin
  ///     case .empty, .local, .queued: icon = .device
  ///     }
  ///
  /// `SlotStatus.seenBy` has which other devices have it. Captures made before are waited for. Costs reading the slot's record, what waits to be sent and what came and isn't shown. Throws
  /// `StoreError` if the store can't be read.
  public func status<Value: Archivable>(of slot: Slot<Value>) throws -> SlotStatus { try status(of: slot.name) }

  /// The same by name, for lists and tools.
  public func status(of slot: String) throws -> SlotStatus {
    try waitForCaptures(in: slot)
    return try durableStatus(of: slot)
  }

  /// The same, live.
  ///
  ///     for try await status in game.saves.statusUpdates(of: .main) { draw(status) }
  public func statusUpdates<Value: Archivable>(of slot: Slot<Value>) -> SlotStatusUpdates { statusUpdates(of: slot.name) }

  /// The same by name.
  public func statusUpdates(of slot: String) -> SlotStatusUpdates { SlotStatusUpdates(saves: self, slot: slot) }

  func durableStatus(of slot: String) throws -> SlotStatus {
    let cloud = core.cloudStatus
    return try core.store.read { transaction in
      let state = try Self.state(of: slot, cloud, in: transaction)
      return SlotStatus(
        slot: FileSlot.shown(slot), state: state, arrival: try Self.arrival(in: slot, cloud, in: transaction),
        isDownloaded: try !transaction.isNotDownloaded(slot), elsewhere: try Self.elsewhere(than: slot, in: transaction),
        lastFetched: try transaction.facts().lastFetchedMilliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) },
        seenBy: state == .stored ? core.seen.devices(of: slot, having: try transaction.heads(of: slot)) : nil)
    }
  }

  private static func state(of slot: String, _ cloud: CloudStatus, in transaction: StoreTransaction) throws -> SlotStatus.State {
    let place = try transaction.place(of: slot)
    let heads = try transaction.heads(of: place)
    guard !heads.isEmpty else { return .empty }
    guard !LocalSlot.contains(place) else { return .local(.kept) }
    guard try transaction.facts().container != nil else { return .local(.neverConnected) }
    let waiting = try heads.filter { try transaction.version($0)?.acknowledged == false }
    guard !waiting.isEmpty else { return .stored }
    for group in try transaction.outbox(limit: try transaction.outboxCount()) where !group.refusals.isEmpty {
      guard let id = group.versions.first(where: waiting.contains) else { continue }
      let refusal = group.refusals.first { $0.item == ExchangeRules.item(id) } ?? group.refusals[0]
      return .refused(CloudStatus.Refusal(EngineRefusal(slot: slot, refusal: refusal)))
    }
    let upload = cloud.transfers.first { $0.isUpload && $0.slot == slot }
    return upload.map { .uploading(fraction: $0.fraction) } ?? .queued
  }

  private static func elsewhere(than slot: String, in transaction: StoreTransaction) throws -> Version? {
    guard try transaction.isLocal(slot) else { return nil }
    let left = try transaction.localDeclaration(of: slot)?.parents ?? []
    guard let best = try Resolution.view(of: slot, in: transaction).heads.first(where: { !left.contains($0.id) }) else { return nil }
    return try transaction.version(best.id).map { Version($0, isPinned: try transaction.isPinned(best.id)) }
  }

  private static func arrival(in slot: String, _ cloud: CloudStatus, in transaction: StoreTransaction) throws -> SlotStatus.Arrival? {
    let isComing = try transaction.staged().contains { change in
      guard case .version(let record) = change.item, record.slot == slot else { return false }
      // The cloud also tells what it made of this device's own save.
      return try transaction.version(record.id) == nil
    }
    let download = cloud.transfers.first { !$0.isUpload && $0.slot == slot }
    guard isComing else { return try transaction.isNotDownloaded(slot) ? download.map { .downloading(fraction: $0.fraction) } : nil }
    if try transaction.facts().hasArrivals { return .arrived }
    return download.map { .downloading(fraction: $0.fraction) } ?? .announced
  }
}
