#if Cloud
import FlowerGarden
import Foundation

/// A request of the story to a device, one line of JSON each; the device responds to each with one `DemoReply`.
enum DemoRequest: Codable {
  case connect(url: URL, appKey: String)
  case pairingCode
  case join(code: String)
  case makeRecoveryCode
  case recover(code: String)
  case signIn(token: String)
  /// The player's own off switch: nothing is sent or received while it is on.
  case airplaneMode(Bool)
  case plant(pot: String, flower: String)
  case water(pot: String, times: Int)
  case reachLevel(Int)
  case unlock(seed: String)
  case claimStarterGift
  case earn(gems: Int)
  case spend(gems: Int, on: String)
  /// Spends what all devices and the bank hold together, and waits so long for them.
  case spendAsking(gems: Int, on: String, seconds: Double)
  /// Removes another device of the player, by its name.
  case remove(device: String)
  /// Takes back what was bought and doesn't count.
  case takeBack
  /// Waits until the cloud is certain to have everything written here.
  case sync
  /// Waits until what is read back here meets the condition, or the time runs out.
  case waitFor(DemoCondition, seconds: Double)
  case readBack
  /// What the game does in the container that it shares with the studio's other games.
  case earnCoins(Int)
  case spendCoins(Int, on: String, seconds: Double)
  case unlockHero(String)
  case studioPairingCode
  case joinStudio(code: String)
  case syncStudio
  case readStudio
  /// Saves a growing number again and again, with one line of acknowledgement each, until killed.
  case saveWithoutPause
  case quit
}

/// A condition that a device waits for.
enum DemoCondition: Codable {
  case flower(String, inPot: String)
  case level(atLeast: Int)
  case seeds([String])
  case gems(total: Int64)
  case goods([String: Int])
  case spendableGems(atLeast: Int64)
  case waterings(Int, ofPot: String)
  case everything(GardenView)
  case studio(StudioView)
}

/// A device's reply.
struct DemoReply: Codable {
  /// Nil if the request was carried out; otherwise the error's message.
  var refused: String?
  var view: GardenView?
  var studio: StudioView?
  var code: String?
  /// Whether the condition was met in time.
  var cameTrue: Bool?
  /// The number that `saveWithoutPause` has just saved durably.
  var acknowledged: Int?
  /// What `takeBack` took back.
  var takenBack: [String]?
}

extension DemoCondition {
  /// Whether a garden meets the condition.
  func isMet(in garden: FlowerGarden) throws -> Bool {
    if case .studio(let expected) = self { return try Studio(of: garden.game).view() == expected }
    return try isMet(in: garden.view())
  }

  private func isMet(in view: GardenView) -> Bool {
    switch self {
    case .flower(let flower, let pot): view.pots[pot]?.flowers.contains(flower) == true
    case .level(let level): view.level >= level
    case .seeds(let seeds): view.seeds == seeds
    case .gems(let total): view.gems == total
    case .goods(let goods): view.goods == goods
    case .spendableGems(let least): view.spendableGems >= least
    case .waterings(let count, let pot): view.pots[pot]?.waterings == count
    case .everything(let expected): view.shared == expected
    case .studio: false
    }
  }
}
#endif
