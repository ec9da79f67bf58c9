#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

/// What the status of a cloud's banks is read from, as of one moment.
protocol BankTables {
  func value(of number: CloudNumber) throws -> UInt64
  /// - Parameter epoch: The cloud's.
  func bankPage(after container: ContainerID?, epoch: UInt64) throws -> BankPage
  /// Returns the container of a player who has a device, with the encoded bank.
  func bank(of player: PlayerID) throws -> (container: Data, bank: Data?)?
  /// Returns the player of a container; nil if no device is left.
  func owner(of container: ContainerID) throws -> PlayerID?
  func device(_ device: DeviceID, of container: ContainerID) throws -> (name: Data?, seen: Int64)?
  /// Returns all that was ever booked as missing in these containers.
  func shortfalls(of containers: [ContainerID]) throws -> [(container: ContainerID, order: NumberedOrder)]
}

/// The same in a transaction of SQLite.
struct SQLiteBankTables: BankTables {
  let db: Database

  func value(of number: CloudNumber) throws -> UInt64 { try number.value(in: db) }

  func bankPage(after container: ContainerID?, epoch: UInt64) throws -> BankPage {
    try BankPage(after: container, epoch: epoch, in: db)
  }

  func bank(of player: PlayerID) throws -> (container: Data, bank: Data?)? {
    try Row.fetchOne(
      db,
      sql: """
        SELECT device.container, container.bank FROM device LEFT JOIN container ON container.id = device.container
        WHERE device.player = ? LIMIT 1
        """, arguments: [player.bytes]
    ).map { (try $0.decode(atIndex: 0), try $0.decode(atIndex: 1)) }
  }

  func owner(of container: ContainerID) throws -> PlayerID? {
    try Data.fetchOne(
      db.cachedStatement(sql: "SELECT player FROM device WHERE container = ? LIMIT 1"), arguments: [container.bytes]
    ).flatMap { PlayerID(bytes: $0) }
  }

  func device(_ device: DeviceID, of container: ContainerID) throws -> (name: Data?, seen: Int64)? {
    try Row.fetchOne(
      db.cachedStatement(sql: "SELECT name, seen FROM device WHERE container = ? AND id = ?"),
      arguments: [container.bytes, device.bytes]
    ).map { (try $0.decode(atIndex: 0), try $0.decode(atIndex: 1)) }
  }

  func shortfalls(of containers: [ContainerID]) throws -> [(container: ContainerID, order: NumberedOrder)] {
    try containers.flatMap { container in
      try Row.fetchAll(
        db.cachedStatement(sql: "SELECT number, details FROM bankOrder WHERE container = ? AND kind = 'shortfall'"),
        arguments: [container.bytes]
      ).map { row in
        let number = UInt64(bitPattern: try row.decode(Int64.self, atIndex: 0))
        return (
          container, NumberedOrder(number: number, order: try Schema.decoded(BankOrder.self, row.decode(atIndex: 1)))
        )
      }
    }
  }
}
#endif
