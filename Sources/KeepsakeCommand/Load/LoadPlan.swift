#if Cloud
import Foundation
import KeepsakeReplication

/// What a load consists of.
struct LoadPlan: Sendable {
  var devices = 64
  /// Devices of one player; more than one pair with a code.
  var perPlayer = 1
  var seconds = 10.0
  /// The mean of the pauses between two requests of a device, whose lengths are random (exponential).
  var thinkMilliseconds = 0.0
  /// The sizes of saves, one of which is chosen at random.
  var sizes = [1_024]
  /// Event streams that only listen, besides the devices.
  var streams = 0
  /// How many of a device's requests, of 1, are an empty exchange, a second device that pairs, and one that fetches
  /// everything again.
  var empty = 0.0
  var pairings = 0.0
  var catchUps = 0.0
  /// Attackers besides the devices: how many for each device.
  var hostile = 0.0
  var attacks = LoadAttack.allCases

  /// Slots of one device: the newest version of each replaces the one before.
  static let slots = 8
  /// The most devices, and the most streams: threads, and descriptors of this process.
  static let maximumDevices = 2_000
  static let maximumStreams = 20_000
  /// As the server allows for one player.
  static let streamsPerPlayer = 64
  static let maximumSeconds = 3_600.0

  var players: Int { (devices + perPlayer - 1) / perPlayer }
  var attackers: Int { Int((Double(devices) * hostile).rounded(.up)) }

  /// Returns what is wrong with it; nil if nothing is.
  var objection: String? {
    if !(1...Self.maximumDevices).contains(devices) { return "--devices takes 1 to \(Self.maximumDevices)" }
    if !(1...devices).contains(perPlayer) { return "--per-player takes 1 to the number of devices" }
    if !(0.1...Self.maximumSeconds).contains(seconds) { return "--seconds takes 0.1 to \(Int(Self.maximumSeconds))" }
    if !(0...600_000).contains(thinkMilliseconds) { return "--think takes 0 to 600000 milliseconds" }
    if sizes.isEmpty || !sizes.allSatisfy({ (1...ExchangeRules.maximumContentBytes).contains($0) }) {
      return "--size takes sizes of 1 byte to 256M, separated by commas"
    }
    if !(0...min(Self.maximumStreams, players * Self.streamsPerPlayer)).contains(streams) {
      return "--streams takes at most \(Self.streamsPerPlayer) for each player, and \(Self.maximumStreams) in all"
    }
    let shares = [empty, pairings, catchUps]
    if !shares.allSatisfy({ (0...1).contains($0) }) || shares.reduce(0, +) > 1 {
      return "--empty, --pairings and --catch-ups take shares of 1, together at most 1"
    }
    if !(0...1).contains(hostile) { return "--hostile takes a share of 1" }
    return nil
  }
}

/// What a hostile client does.
enum LoadAttack: String, CaseIterable, Sendable, Encodable {
  /// Bodies that arrive a little at a time.
  case slowBodies = "slow-bodies"
  /// Large responses that are never read.
  case unreadAnswers = "unread-answers"
  /// Versions that replace tens of thousands of others.
  case hugeCovers = "huge-covers"
  /// Tokens that no server issued.
  case forgedTokens = "forged-tokens"
}
#endif
