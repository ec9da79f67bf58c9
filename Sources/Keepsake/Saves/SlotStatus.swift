public import Foundation
import KeepsakeReplication
import KeepsakeStore

/// Where the current save of a slot is: on this device, on its way to the cloud, or in the cloud; and what is arriving.
public struct SlotStatus: Sendable, Hashable {
  /// How far the current save has come.
  public enum State: Sendable, Hashable {
    /// The slot has never had a save, as far as this device knows.
    case empty
    /// On this device only, for this reason.
    case local(LocalReason)
    /// Durable on this device; waiting to be sent, for the network, or for `Cloud.isEnabled`.
    case queued
    /// A large save is being uploaded; `fraction` is from 0 to 1.
    case uploading(fraction: Double)
    /// The cloud has all of it.
    case stored
    /// The cloud refuses it. Everything else continues.
    case refused(CloudStatus.Refusal)
  }

  /// Why a save is on this device only.
  public enum LocalReason: Sendable, Hashable {
    /// The data has never been connected to a cloud.
    case neverConnected
    /// The slot is local (`SaveSlots.keepLocal`).
    case kept
  }

  /// A save of another device that the game doesn't see yet.
  public enum Arrival: Sendable, Hashable {
    /// The save is known, but not all of it is on this device: it waits for its turn or for the network.
    case announced
    /// It is being downloaded; `fraction` is from 0 to 1.
    case downloading(fraction: Double)
    /// All of it is on this device, and `Cloud.delivery` holds it back.
    case arrived
  }

  /// The slot's name.
  public let slot: String
  /// How far the current save has come; in a conflict, the side that is furthest behind. A delete counts as a save.
  public let state: State
  /// What is arriving; nil if nothing is.
  public let arrival: Arrival?
  /// Whether the current save can be loaded without the cloud; false if `Cloud.downloads` left it there.
  public let isDownloaded: Bool
  /// What other devices have saved under the name of a local slot since it became local, as far as this device knows.
  /// Nil if they saved nothing, or the slot isn't local.
  public let elsewhere: Version?
  /// When the cloud last responded to this device, by this device's clock; nil if it never did. Newer saves may have
  /// been made since then.
  public let lastFetched: Date?
  /// The player's other devices that have the current save, according to the cloud's last response; nil if it wasn't
  /// asked about this save, or doesn't know.
  ///
  /// The cloud is asked while somebody iterates `SaveSlots.statusUpdates(of:)`, within 30 seconds after the cloud has
  /// the save and then every 30 seconds, and by `SaveSlots.seenBy(_:)`, which describes what being listed means. Not
  /// kept across a restart.
  public let seenBy: [CloudDevice]?
}

/// The status of a slot as a live sequence: the current status, and each change. A slow reader gets the newest.
///
/// While somebody iterates it, the cloud is asked every 30 seconds which devices have the save (`SlotStatus.seenBy`):
/// one small request for all such slots, none while the cloud can't be reached. Leave the loop to stop that.
///
/// Ends when the game's data is closed or the task is cancelled. Throws `GameDataError` with `misuse` for
/// an invalid name, and `StoreError` if the store can't be read.
public struct SlotStatusUpdates: AsyncSequence, Sendable {
  public typealias Element = SlotStatus
  public typealias Failure = any Error

  let saves: SaveSlots
  let slot: String

  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// The state of one loop. Reads the store on the calling actor.
  public struct Iterator: AsyncIteratorProtocol {
    private let updates: SlotStatusUpdates
    private var ticks: AsyncStream<Void>.Iterator
    private var emitted: SlotStatus?
    private let look: SeenByCache.Look

    init(_ updates: SlotStatusUpdates) {
      self.updates = updates
      let core = updates.saves.core
      ticks = core.events.statusTicks.stream().makeAsyncIterator()
      look = core.seen.look(at: updates.slot)
      core.events.statusDidChange()
    }

    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> SlotStatus? {
      while true {
        if emitted == nil {
          try SaveSlots.check(updates.slot)
        } else {
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
  /// Returns the status of a slot.
  ///
  /// ```swift
  /// switch try game.saves.status(of: .main).state {
  /// case .stored: icon = .cloud
  /// case .uploading(let fraction): icon = .arrow(fraction)
  /// case .refused(let refusal): icon = .warning(refusal.message)
  /// case .local(.kept): icon = .pin
  /// case .empty, .local, .queued: icon = .device
  /// }
  /// ```
  ///
  /// Waits for earlier captures. Costs reading the slot's record, the outbox, and what has arrived but isn't delivered.
  ///
  /// - Parameter slot: The slot.
  /// - Returns: The status now.
  /// - Throws: `GameDataError` with `misuse` for an invalid name; `StoreError` if the store can't be read.
  public func status<Value>(of slot: Slot<Value>) throws -> SlotStatus { try status(of: slot.name) }

  /// Returns the status of a slot, by the slot's name.
  ///
  /// - Parameter slot: The slot's name.
  /// - Returns: The status now.
  /// - Throws: `GameDataError` with `misuse` for an invalid name; `StoreError` if the store can't be read.
  public func status(of slot: String) throws -> SlotStatus {
    let slot = try Self.checked(slot)
    core.slotParents.waitForCaptures(in: slot)
    return try durableStatus(of: slot)
  }

  /// Returns the status of a slot as a live sequence.
  ///
  /// ```swift
  /// for try await status in game.saves.statusUpdates(of: .main) { draw(status) }
  /// ```
  ///
  /// - Parameter slot: The slot.
  /// - Returns: A sequence for `for try await`.
  public func statusUpdates<Value>(of slot: Slot<Value>) -> SlotStatusUpdates {
    statusUpdates(of: slot.name)
  }

  /// Returns the status of a slot as a live sequence, by the slot's name.
  ///
  /// - Parameter slot: The slot's name.
  /// - Returns: A sequence for `for try await`.
  public func statusUpdates(of slot: String) -> SlotStatusUpdates {
    SlotStatusUpdates(saves: self, slot: slot.canonical)
  }

  /// Also returns the status of a tracked file, by its slot key.
  func durableStatus(of slot: String) throws -> SlotStatus {
    let cloud = core.cloud.status
    return try core.store.read { transaction in
      let state = try Self.state(of: slot, cloud, in: transaction)
      return SlotStatus(
        slot: SlotKey(text: slot).name, state: state, arrival: try Self.arrival(in: slot, cloud, in: transaction),
        isDownloaded: try !transaction.isNotDownloaded(slot),
        elsewhere: try Self.elsewhere(than: slot, in: transaction),
        lastFetched: try transaction.facts().lastFetchedMilliseconds.map {
          Date(timeIntervalSince1970: Double($0) / 1000)
        },
        seenBy: state == .stored ? core.seen.devices(of: slot, having: try transaction.heads(of: slot)) : nil)
    }
  }

  private static func state(of slot: String, _ cloud: CloudStatus, in transaction: StoreTransaction) throws
    -> SlotStatus.State
  {
    let key = try transaction.key(of: slot)
    let heads = try transaction.heads(of: key)
    guard !heads.isEmpty else { return .empty }
    guard !key.isLocal else { return .local(.kept) }
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
    guard let best = try Resolution.view(of: slot, in: transaction).heads.first(where: { !left.contains($0.id) }) else {
      return nil
    }
    return try transaction.version(best.id).map { Version($0, isPinned: try transaction.isPinned(best.id)) }
  }

  private static func arrival(in slot: String, _ cloud: CloudStatus, in transaction: StoreTransaction) throws
    -> SlotStatus.Arrival?
  {
    let isComing = try transaction.staged().contains { change in
      guard case .version(let record) = change.item, record.slot == slot else { return false }
      // The cloud's changes also include what became of this device's own saves.
      return try transaction.version(record.id) == nil
    }
    let download = cloud.transfers.first { !$0.isUpload && $0.slot == slot }
    guard isComing else {
      return try transaction.isNotDownloaded(slot) ? download.map { .downloading(fraction: $0.fraction) } : nil
    }
    if try transaction.facts().hasArrivals { return .arrived }
    return download.map { .downloading(fraction: $0.fraction) } ?? .announced
  }
}
