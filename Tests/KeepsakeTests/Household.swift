import Foundation
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// A player's phone and tablet, and the cloud between them.
struct Household {
  let clock = TestClock()
  let cloud = MemoryCloud()
  let phone: Device
  let tablet: Device

  init() throws {
    phone = try Device(clock: clock)
    tablet = try Device(clock: clock)
  }
}

/// Tests whose devices are those of a household.
protocol AtHome {
  var home: Household { get }
}

extension AtHome {
  var clock: TestClock { home.clock }
  var cloud: MemoryCloud { home.cloud }
  var phone: Device { home.phone }
  var tablet: Device { home.tablet }

  func connected(_ device: Device) async throws -> GameData {
    let game = try device.open()
    game.cloud.connect(cloud.address)
    try await game.cloud.sync()
    return game
  }

  /// Syncs all games twice, so that each has sent its changes and fetched those of the others.
  func settle(_ games: GameData...) async throws {
    for game in games + games { try await game.cloud.sync() }
  }

  /// Heals the network once none of these games has a request in flight that was sent while it was cut.
  func heal(_ games: GameData...) async throws { try await cloud.heal(for: games, of: clock) }
}

extension MemoryCloud {
  /// Heals the network, which is cut, once none of these games has a request in flight: one that was sent before would
  /// still fail, and with it a `sync` that was called after the network was healed.
  func heal(for games: [GameData], of clock: TestClock) async throws {
    clock.holdsPauses.value = true
    defer { clock.holdsPauses.value = false }
    // The first attempt may end by the failure of a content while others are in flight. The second one sends only an
    // exchange, because contents wait until one has succeeded.
    for game in games + games {
      await #expect { try await game.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .unreachable }
      try await until { game.cloud.status.transfers.isEmpty }
    }
    isCut = false
  }
}

/// A folder with the games of several accounts, on several devices.
struct AccountsFolder {
  let folder: TemporaryFolder
  let clock = TestClock()

  init() throws { folder = try TemporaryFolder() }
}

/// Tests that open games of several accounts.
protocol WithAccounts {
  var place: AccountsFolder { get }
  var environment: GameEnvironment { get }
}

extension WithAccounts {
  static var ada: Account { .named("ada") }
  var folder: TemporaryFolder { place.folder }
  var clock: TestClock { place.clock }
  var environment: GameEnvironment { clock.environment }

  /// The environment of games that can still ask the bank of a cloud which they have left.
  func environment(leaving cloud: MemoryCloud) -> GameEnvironment {
    var environment = clock.environment
    environment.formerCloud = { container in container == cloud.id ? cloud : nil }
    return environment
  }

  func open(_ account: Account, in place: String = "device") throws -> GameData {
    try GameData.open(
      "com.example.space", account: account, in: folder.url.appendingPathComponent(place),
      environment: environment)
  }

  /// Opens the account's game, and closes it even if the body throws.
  @discardableResult
  func with<Value>(_ account: Account, in place: String = "device", _ body: (GameData) throws -> Value) throws -> Value
  {
    let game = try open(account, in: place)
    defer { end(game) }
    return try body(game)
  }
}
