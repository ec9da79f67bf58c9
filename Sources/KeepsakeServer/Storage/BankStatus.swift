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
  /// The database's generation, which grows while the server runs.
  package var generation: UInt64
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
  /// Reads the status from a server's data folder, without changing anything there, whether the server runs or not.
  ///
  /// Looks at every bank, a page at a time.
  ///
  /// - Parameter player: Whose bank to look at; nil for all.
  /// - Throws: A `ServerError` if the database can't be read, is of another version, or there is no such player.
  package init(data: URL, player: PlayerID? = nil) throws {
    let database = try DataFolder.existingDatabase(in: data)
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    do {
      let queue = try DatabaseQueue(path: database.path, configuration: configuration)
      self = try queue.read { db in
        try Schema.requireCurrent(db)
        return BankStatus(
          epoch: try CloudNumber.bankEpoch.value(in: db), generation: try CloudNumber.generation.value(in: db),
          isMarked: try CloudNumber.isRestored.value(in: db) > 0)
      }
      if let player {
        try queue.read { db in try take(try Self.entry(of: player, epoch: epoch, in: db), in: db) }
      } else {
        var place: ContainerID?
        repeat {
          place = try queue.read { db in
            let page = try BankPage(after: place, epoch: epoch, in: db)
            for entry in page.entries { try take(entry, in: db) }
            unreadable += page.unreadable
            return page.next
          }
        } while place != nil
      }
    } catch {
      throw Schema.failure(error, opening: database)
    }
  }

  private static func entry(of player: PlayerID, epoch: UInt64, in db: Database) throws -> BankPage.Entry {
    let found = try Row.fetchOne(
      db,
      sql: """
        SELECT device.container, container.bank FROM device LEFT JOIN container ON container.id = device.container
        WHERE device.player = ? LIMIT 1
        """, arguments: [player.bytes])
    guard let found else { throw ServerError.unknownPlayer(player) }
    guard let container = try ContainerID(bytes: found.decode(Data.self, atIndex: 0)) else {
      throw ServerError(.damaged, "A device's row can't be read.")
    }
    let state = try found.decode(Data?.self, atIndex: 1).map { try Schema.decoded(BankState.self, $0) }
    return BankPage.Entry(container: container, state ?? BankState(), epoch: epoch)
  }

  private mutating func take(_ entry: BankPage.Entry, in db: Database) throws {
    let bank = entry.bank
    if bank.state.orderNumber != nil {
      for order in try Self.shortfalls(of: entry, in: db) {
        shortfalls[order.currency] = (shortfalls[order.currency] ?? 0).addingClamped(order.amount)
      }
    }
    guard bank.isFrozen else { return }
    frozen += 1
    guard players.count < Self.maximumPlayers else { return }
    let owner = try Data.fetchOne(
      db.cachedStatement(sql: "SELECT player FROM device WHERE container = ? LIMIT 1"),
      arguments: [entry.container.bytes])
    players.append(
      Player(
        player: owner.flatMap { PlayerID(bytes: $0) }, container: entry.container,
        devices: try Self.devices(of: entry, in: db), missing: bank.state.missing ?? [:],
        waiting: bank.waitingSpends()))
  }

  /// Returns the devices that have the chains which aren't shown yet, sorted.
  private static func devices(of entry: BankPage.Entry, in db: Database) throws -> [Device] {
    let chains = entry.bank.unreported.values
    var devices = try Set(chains.compactMap(\.device)).sorted().map { id in
      let row = try Row.fetchOne(
        db.cachedStatement(sql: "SELECT name, seen FROM device WHERE container = ? AND id = ?"),
        arguments: [entry.container.bytes, id.bytes])
      let name = try row?.decode(Data?.self, atIndex: 0) ?? nil
      return Device(
        device: id, name: name.map { String(decoding: $0, as: UTF8.self) } ?? "",
        seenMilliseconds: try row?.decode(atIndex: 1))
    }
    // Chains of older versions, whose devices are unknown.
    for chain in chains where chain.device == nil {
      devices.append(Device(name: "", seenMilliseconds: chain.seenMilliseconds > 0 ? chain.seenMilliseconds : nil))
    }
    return devices
  }

  /// Returns what was booked as missing in the bank's epoch.
  private static func shortfalls(of entry: BankPage.Entry, in db: Database) throws -> [BankOrder] {
    let rows = try Row.fetchAll(
      db.cachedStatement(
        sql: "SELECT number, details FROM bankOrder WHERE container = ? AND kind = 'shortfall'"),
      arguments: [entry.container.bytes])
    return try rows.compactMap { row in
      let order = NumberedOrder(
        number: UInt64(bitPattern: try row.decode(Int64.self, atIndex: 0)),
        order: try Schema.decoded(BankOrder.self, row.decode(atIndex: 1)))
      return order.isShortfall(of: entry.bank.epoch) ? order.order : nil
    }
  }
}

extension ServerError {
  static func unknownPlayer(_ player: PlayerID) -> ServerError {
    ServerError(.missing, "There is no player \(player), or none of the player's devices is left.")
  }
}
#endif
