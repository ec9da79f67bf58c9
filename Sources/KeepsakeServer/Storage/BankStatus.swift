#if Cloud
package import Foundation
import GRDB
package import KeepsakeReplication

/// Whether the banks of a cloud wait for devices since the cloud was set back to a backup, and for which.
package struct BankStatus: Sendable {
  /// The most players that are listed; of the others, there is only their number.
  package static let maximumPlayers = 100

  /// A device that hasn't shown yet what it was granted.
  package struct Device: Sendable {
    /// Nil if the bank doesn't know which device has the chain.
    package var device: DeviceID?
    package var name: String
    /// When it last exchanged, in milliseconds since 1970; nil if the device isn't known.
    package var seenMilliseconds: Int64?
  }

  /// A player whose bank waits.
  package struct Player: Sendable {
    /// Nil if the player has no device that isn't removed.
    package var player: PlayerID?
    package var container: ContainerID
    package var devices: [Device]
    /// What devices have shown that they were granted, and the bank doesn't have so far, by currency.
    package var missing: [String: Int64]
    /// What spends wait to take, by currency.
    package var waiting: [String: Int64]
  }

  /// The epoch that every bank has to reach; 0 if the cloud was never set back.
  package var epoch: UInt64
  /// The database's generation, which grows while the server runs; nil for one that several servers use.
  package var generation: UInt64?
  /// Whether the next start begins a new epoch.
  package var isMarked: Bool
  /// How many players' banks wait.
  package var frozen = 0
  /// The first of them.
  package var players: [Player] = []
  /// What was booked as missing since the last epoch began, by currency. The players keep it.
  package var shortfalls: [String: Int64] = [:]
  /// How many banks can't be read.
  package var unreadable = 0
}

extension BankStatus {
  /// Reads the status of a cloud, without changing anything there, whether servers run or not.
  ///
  /// Looks at every bank, a page at a time.
  ///
  /// - Parameters:
  ///   - data: The data folder of a server; not looked at if there is an address.
  ///   - database: The address of the PostgreSQL database that the cloud is in; nil for one in the folder.
  ///   - player: Whose bank to look at; nil for all.
  /// - Throws: A `ServerError` if the database can't be read, is of another version, or there is no such player.
  package init(data: URL, database: String? = nil, player: PlayerID? = nil) throws {
    if let database {
      self = try CloudDatabase.bankStatus(database, player: player)
      return
    }
    let file = try DataFolder.ownDatabase(in: data)
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    do {
      let queue = try DatabaseQueue(path: file.path, configuration: configuration)
      try self.init(hasGeneration: true, player: player) { body in
        try queue.read { db in
          try Schema.requireCurrent(db)
          try body(SQLiteBankTables(db: db))
        }
      }
    } catch {
      throw Schema.failure(error, opening: file)
    }
  }

  /// - Parameter reading: Calls its argument with the tables as they are at one moment.
  init(
    hasGeneration: Bool, player: PlayerID?, _ reading: ((any BankTables) throws -> Void) throws -> Void
  ) throws {
    var status = BankStatus(epoch: 0, isMarked: false)
    try reading { tables in
      status.epoch = try tables.value(of: .bankEpoch)
      if hasGeneration { status.generation = try tables.value(of: .generation) }
      status.isMarked = try tables.value(of: .isRestored) > 0
      if let player { try status.take([try Self.entry(of: player, epoch: status.epoch, in: tables)], in: tables) }
    }
    var (place, isOver): (ContainerID?, Bool) = (nil, player != nil)
    while !isOver {
      try reading { tables in
        let page = try tables.bankPage(after: place, epoch: status.epoch)
        try status.take(page.entries, in: tables)
        status.unreadable += page.unreadable
        (place, isOver) = (page.next, page.next == nil)
      }
    }
    self = status
  }

  private static func entry(
    of player: PlayerID, epoch: UInt64, in tables: any BankTables
  ) throws -> BankPage.Entry {
    guard let found = try tables.bank(of: player) else { throw ServerError.unknownPlayer(player) }
    guard let container = ContainerID(bytes: found.container) else {
      throw ServerError(.damaged, "A device's row can't be read.")
    }
    let state = try found.bank.map { try Schema.decoded(BankState.self, $0) }
    return BankPage.Entry(container: container, state ?? BankState(), epoch: epoch)
  }

  private mutating func take(_ entries: [BankPage.Entry], in tables: any BankTables) throws {
    let epochs = Dictionary(entries.map { ($0.container, $0.bank.epoch) }) { $1 }
    let ordered = entries.filter { $0.bank.state.orderNumber != nil }.map(\.container)
    if !ordered.isEmpty {
      for (container, order) in try tables.shortfalls(of: ordered) {
        guard let epoch = epochs[container], order.isShortfall(of: epoch) else { continue }
        let (currency, amount) = (order.order.currency, order.order.amount)
        shortfalls[currency] = (shortfalls[currency] ?? 0).addingClamped(amount)
      }
    }
    for entry in entries where entry.bank.isFrozen {
      frozen += 1
      guard players.count < Self.maximumPlayers else { continue }
      players.append(
        Player(
          player: try tables.owner(of: entry.container), container: entry.container,
          devices: try Self.devices(of: entry, in: tables), missing: entry.bank.state.missing ?? [:],
          waiting: entry.bank.waitingSpends()))
    }
  }

  /// Returns the devices that have the chains which aren't shown yet, sorted.
  private static func devices(of entry: BankPage.Entry, in tables: any BankTables) throws -> [Device] {
    let chains = entry.bank.unreported.values
    var devices = try Set(chains.compactMap(\.device)).sorted().map { id in
      let known = try tables.device(id, of: entry.container)
      return Device(
        device: id, name: known?.name.map { String(decoding: $0, as: UTF8.self) } ?? "",
        seenMilliseconds: known?.seen)
    }
    // Chains of older versions, whose devices are unknown.
    for chain in chains where chain.device == nil {
      devices.append(Device(name: "", seenMilliseconds: chain.seenMilliseconds > 0 ? chain.seenMilliseconds : nil))
    }
    return devices
  }
}

extension ServerError {
  static func unknownPlayer(_ player: PlayerID) -> ServerError {
    ServerError(.missing, "There is no player \(player), or none of the player's devices is left.")
  }
}
#endif
