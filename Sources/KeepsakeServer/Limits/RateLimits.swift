#if Cloud
import HTTPTypes
import KeepsakeReplication

/// How fast requests may come. The defaults are far above what honest devices do, and low enough that no sender takes
/// much of the server from the others.
package struct RateLimits: Hashable, Sendable {
  /// Requests by one device: a new one fetches a few thousand contents at most, and then sends one request after the
  /// other.
  package var device = BucketRate(burst: 2_000, perSecond: 100)
  /// Requests by all devices of one player.
  package var player = BucketRate(burst: 4_000, perSecond: 200)
  /// Requests from one address (the first 64 bits of an IPv6 address): a school's or a provider's, behind which are
  /// hundreds of players. This machine's own addresses are exempt: they are a proxy's that nobody declared, or the
  /// operator's.
  package var address = BucketRate(burst: 10_000, perSecond: 1_000)
  /// Requests by all players of one app.
  package var app = BucketRate(burst: 50_000, perSecond: 20_000)
  /// Work of one player (``RequestWork``), and of all players at one address: about a hundredth, and about a tenth, of
  /// what one writer does. A request with more is possible after a quiet time, and paid off afterwards.
  package var playerWork = BucketRate(burst: 100_000, perSecond: 1_000)
  package var addressWork = BucketRate(burst: 200_000, perSecond: 8_000)
  /// New players from one address, this machine's included: 600 an hour, 100 of them at once.
  package var registrations = BucketRate.hourly(600)
  /// New players of one app: a launch with ten a second for as long as it likes.
  package var appRegistrations = BucketRate(burst: 6_000, perSecond: 10)

  package init() {}
}

/// The buckets of all devices, players, addresses and apps that were here lately.
final class RateBuckets: Sendable {
  private let devices: BucketTable<DeviceID>
  private let players: BucketTable<ContainerID>
  private let addresses: BucketTable<PeerAddress>
  private let apps: BucketTable<AppID>
  private let playerWork: BucketTable<ContainerID>
  private let addressWork: BucketTable<PeerAddress>
  private let registrations: BucketTable<PeerAddress>
  private let appRegistrations: BucketTable<AppID>
  private let refusals: RefusalLog
  private let clock: @Sendable () -> Int64

  init(_ rates: RateLimits, refusals: RefusalLog, clock: @escaping @Sendable () -> Int64) {
    let capacity = ServerLimits.rememberedBuckets
    devices = BucketTable(rates.device, capacity: capacity)
    players = BucketTable(rates.player, capacity: capacity)
    addresses = BucketTable(rates.address, capacity: capacity)
    apps = BucketTable(rates.app, capacity: capacity)
    playerWork = BucketTable(rates.playerWork, capacity: capacity)
    addressWork = BucketTable(rates.addressWork, capacity: capacity)
    registrations = BucketTable(rates.registrations, capacity: capacity)
    appRegistrations = BucketTable(rates.appRegistrations, capacity: capacity)
    self.refusals = refusals
    self.clock = clock
  }

  /// Counts a request from an address, with or without a token. Throws an `APIError` if the address has to wait.
  func request(from address: PeerAddress) throws {
    guard !address.isLoopback else { return }
    try refuse(addresses.take(from: address.network, now: clock()), .addressRate, "Too many requests.", address)
  }

  /// Counts a request of a known device. Throws an `APIError` if it, its player or its app has to wait.
  func request(by identity: DeviceIdentity) throws {
    let now = clock()
    try refuse(devices.take(from: identity.device, now: now), .deviceRate, "This device sends too many requests.")
    try refuse(
      players.take(from: identity.container, now: now), .playerRate, "This player's devices send too many requests.")
    try refuse(apps.take(from: identity.app, now: now), .appRate, "This app's players send too many requests.")
  }

  /// Counts a new player. Throws an `APIError` if the address or the app has to wait.
  func registration(from address: PeerAddress, app: AppID) throws {
    let now = clock()
    try refuse(
      registrations.take(from: address.network, now: now), .registrationRate, "Too many new players from here.", address
    )
    try refuse(appRegistrations.take(from: app, now: now), .registrationRate, "Too many new players of this app.")
  }

  /// Counts a device that joined a player. It may always join: nobody can without the player's code. But what it takes
  /// is missing for new players, so that nobody registers devices without end.
  func joined(from address: PeerAddress, app: AppID) {
    let now = clock()
    registrations.charge(1, to: address.network, now: now)
    appRegistrations.charge(1, to: app, now: now)
  }

  /// Counts what a request will cost. Throws an `APIError` if the player or the address has to wait.
  ///
  /// - Parameter paid: What was counted of the same request before.
  func work(_ units: Int, paid: Int = 0, by container: ContainerID, from address: PeerAddress) throws {
    guard units > 0 else { return }
    let (now, cost, paid) = (clock(), Int64(units), Int64(paid))
    if !address.isLoopback {
      try refuse(
        addressWork.take(cost, paid: paid, from: address.network, now: now), .workRate, "Too much at once.", address)
    }
    try refuse(
      playerWork.take(cost, paid: paid, from: container, now: now), .workRate, "Too much at once from this player.")
  }

  private func refuse(_ wait: Int?, _ kind: RefusalLog.Kind, _ what: String, _ peer: PeerAddress? = nil) throws {
    guard let wait else { return }
    throw refusals.count(
      kind, from: peer,
      as: APIError(.tooManyRequests, .tooManyRequests, "\(what) Try again in \(wait) s.", retryAfterSeconds: wait))
  }
}
#endif
