import Foundation
import KeepsakeReplication

/// The cloud of a test's world, in the test's process.
///
/// ```swift
/// let yesterday = world.cloud.backup()
/// ...
/// world.cloud.restore(yesterday)    // as after a server's disk was replaced
/// world.cloud.isFull = true         // accepts no more saves
/// ```
///
/// It uses the server's own code for accepting, merging, responding and the bank. It isn't the server: there is no
/// HTTP, registration, pairing code, token or database. It has one player, and every device of the world belongs to
/// that player. Safe to use from any thread.
public final class TestCloud: Sendable {
  /// The contents of the cloud at one moment.
  public struct Backup: Sendable {
    let container: MemoryContainer
  }

  let memory: MemoryCloud

  init(clock: TestClock) {
    // Truly random, so that no store from another world or an earlier test run takes this cloud for its own.
    var random = SystemRandomNumberGenerator()
    memory = MemoryCloud(id: ContainerID(using: &random)) { clock.nowMilliseconds }
  }

  /// Whether the cloud is full: it refuses saves and values, but still sends what is new.
  ///
  /// Refused items are sent again when a device starts or calls `sync()`, in `TestWorld.settle()`, and after ten
  /// minutes.
  public var isFull: Bool {
    get { memory.isFull }
    set { memory.isFull = newValue }
  }

  /// The player's quota in bytes, as the server's `--quota`; nil, the default, for no limit.
  ///
  /// ```swift
  /// world.cloud.quota = 100_000
  /// ...
  /// #expect(phone.game.cloud.status.refusals.first?.reason == .quota)
  /// ```
  ///
  /// Saves beyond it are refused; deletions, values and money are accepted. A deletion makes room.
  public var quota: Int64? {
    get { memory.quota }
    set { memory.quota = newValue }
  }

  /// The number of exchanges that the cloud has processed, from all devices.
  public var exchanges: Int { memory.exchanges }

  /// Makes a backup of everything in the cloud. Costs nothing until something changes.
  ///
  /// - Returns: The backup.
  public func backup() -> Backup { Backup(container: memory.container) }

  /// Restores a backup: later changes are gone from the cloud, and its devices send them again. Money, too: until every
  /// device has synced, the bank gives nobody what others may have, and claims are pending.
  ///
  /// - Parameter backup: The backup.
  public func restore(_ backup: Backup) { memory.restore(backup.container) }
}
