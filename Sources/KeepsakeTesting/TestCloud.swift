import Foundation
import KeepsakeReplication

/// The cloud of a test's world, in the test's process.
///
///     let yesterday = world.cloud.backup()
///     ...
///     world.cloud.restore(yesterday)        // as a server whose disk was replaced
///     world.cloud.isFull = true             // takes no saves any more
///
/// It decides as the server does, with the server's own code: what it takes, what it joins, what it answers, and the bank. It isn't the server: there is
/// no HTTP, no registering, no pairing code, no token and no database. It has one player, and every device of the world is that player's.
/// Safe to use from any thread.
public final class TestCloud: Sendable {
  /// All that the cloud held at one moment.
  public struct Backup: Sendable {
    let container: MemoryContainer
  }

  let memory: MemoryCloud

  init(clock: TestClock) {
    // Drawn from the system: no store of another world, or of yesterday's test, may take this cloud for its own.
    var random = SystemRandomNumberGenerator()
    memory = MemoryCloud(id: ContainerID(using: &random)) { clock.nowMilliseconds }
  }

  /// Whether the cloud has no room left: it refuses saves and values, and goes on telling what is new.
  ///
  /// What it refuses is tried again when a device begins or calls `sync()`, and so by `TestWorld.settle()`; and by itself after ten minutes.
  public var isFull: Bool {
    get { memory.isFull }
    set { memory.isFull = newValue }
  }

  /// Bytes that the player may keep in the cloud, as its server's `--quota` says; nil, the default, for any number.
  ///
  ///     world.cloud.quota = 100_000
  ///     ...
  ///     #expect(phone.game.cloud.status.refusals.first?.reason == .quota)
  ///
  /// Saves beyond it are refused, but deletes, values and money are taken. A delete makes room.
  public var quota: Int64? {
    get { memory.quota }
    set { memory.quota = newValue }
  }

  /// How many exchanges the cloud has answered, of all devices.
  public var exchanges: Int { memory.exchanges }

  /// All that it holds now. Costs nothing until something changes.
  public func backup() -> Backup { Backup(container: memory.container) }

  /// Puts everything back as it was: what came since is gone from the cloud, and its devices have to bring it again.
  public func restore(_ backup: Backup) { memory.container = backup.container }
}
