#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeServer

/// What `keepsake bank status --json` prints.
struct BankStatusReport: Encodable {
  struct Money: Encodable {
    var currency: String
    var amount: Int64
  }
  /// A device that hasn't shown yet what it was granted.
  struct Device: Encodable {
    /// Its id; nil if the bank doesn't know which device it is.
    var device: String?
    var deviceName: String
    /// When it last exchanged; nil if the device isn't known.
    var seen: String?
    var seenMilliseconds: Int64?
  }
  /// A player whose money is frozen.
  struct Player: Encodable {
    /// The id; nil if the player has no device that isn't removed.
    var player: String?
    var container: String
    var devices: [Device]
    /// What devices have shown that they were granted, and the bank doesn't have so far.
    var missing: [Money]
    /// What spends wait to take.
    var waitingSpends: [Money]
  }
  /// The folder of the cloud's data.
  var path: String
  var epoch: UInt64
  /// Nil for a database that several servers use.
  var generation: UInt64?
  /// Whether the next start begins a new epoch.
  var marked: Bool
  var frozenCount: Int
  /// The first of those whose money is frozen.
  var players: [Player]
  /// What was booked as missing since the last epoch began.
  var shortfalls: [Money]
  /// How many banks can't be read.
  var unreadableCount: Int

  init(path: String, _ status: BankStatus) {
    self.path = path
    (epoch, generation, marked) = (status.epoch, status.generation, status.isMarked)
    (frozenCount, unreadableCount) = (status.frozen, status.unreadable)
    players = status.players.map { player in
      Player(
        player: player.player?.description, container: player.container.description,
        devices: player.devices.map {
          Device(
            device: $0.device?.description, deviceName: $0.name,
            seen: $0.seenMilliseconds.map(TimeText.iso(milliseconds:)), seenMilliseconds: $0.seenMilliseconds)
        },
        missing: Self.money(player.missing), waitingSpends: Self.money(player.waiting))
    }
    shortfalls = Self.money(status.shortfalls)
  }

  private static func money(_ amounts: [String: Int64]) -> [Money] {
    amounts.sorted { $0.key < $1.key }.map { Money(currency: $0.key, amount: $0.value) }
  }
}
#endif
