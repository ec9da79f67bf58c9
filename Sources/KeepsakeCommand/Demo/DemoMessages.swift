#if Cloud
import FlowerGarden
import Foundation

/// What the story asks of a device, one JSON line each; the device answers each with one `DemoReply`.
enum DemoRequest: Codable {
  case connect(url: URL, appKey: String)
  case pairingCode
  case join(code: String)
  /// The player's own off switch: nothing is sent or received while it is on.
  case airplaneMode(Bool)
  case plant(pot: String, flower: String)
  case water(pot: String, times: Int)
  case reachLevel(Int)
  case unlock(seed: String)
  case claimStarterGift
  case earn(gems: Int)
  case spend(gems: Int, on: String)
  /// Waits until everything written here is certain in the cloud.
  case sync
  /// Waits until what is read back here satisfies the wish, or the time is over.
  case waitFor(DemoCondition, seconds: Double)
  case readBack
  /// Saves a growing number again and again, one acknowledgement line each, until killed.
  case saveWithoutPause
  case quit
}

/// Something that a device waits to see.
enum DemoCondition: Codable {
  case flower(String, inPot: String)
  case level(atLeast: Int)
  case gems(total: Int64)
  case spendableGems(atLeast: Int64)
  case waterings(Int, ofPot: String)
  case everything(GardenView)
}

/// What a device answers.
struct DemoReply: Codable {
  /// Nil if it was done; else the error's own words.
  var refused: String?
  var view: GardenView?
  var code: String?
  /// Whether what was waited for came true in time.
  var cameTrue: Bool?
  /// The number that `saveWithoutPause` has just had acknowledged.
  var acknowledged: Int?
}

extension DemoCondition {
  /// Whether a device that sees this has what was waited for.
  func isMet(in view: GardenView) -> Bool {
    switch self {
    case .flower(let flower, let pot): view.pots[pot]?.flowers.contains(flower) == true
    case .level(let level): view.level >= level
    case .gems(let total): view.gems == total
    case .spendableGems(let least): view.spendableGems >= least
    case .waterings(let count, let pot): view.pots[pot]?.waterings == count
    case .everything(let expected): view.shared == expected
    }
  }
}
#endif
