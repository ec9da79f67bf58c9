#if Cloud
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
  case claimStarterGift(gems: Int)
  case earn(gems: Int)
  case spend(gems: Int, on: String)
  /// Waits until everything written here is certain in the cloud.
  case sendNow
  /// Waits until what is read back here satisfies the wish, or the time is over.
  case waitFor(DemoWish, seconds: Double)
  case readBack
  /// Saves a growing number again and again, one acknowledgement line each, until killed.
  case saveWithoutPause
  case quit
}

/// Something that a device waits to see.
enum DemoWish: Codable {
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

/// All that a player can see on one device, read back through the game-facing calls.
struct GardenView: Codable, Equatable {
  struct PotView: Codable, Equatable {
    var flowers: [String]
    var height: Int
    var waterings: Int
    var heads: Int
    var versions: Int
  }
  var level: Int
  var seeds: [String]
  var gems: Int64
  var spendableGems: Int64
  var pots: [String: PotView]
  var journal: Int

  /// What must be the same on every device: all but what is this device's own (rights, versions kept).
  var shared: GardenView {
    var view = self
    view.spendableGems = 0
    view.pots = pots.mapValues { pot in
      var pot = pot
      pot.versions = 0
      pot.heads = 0
      return pot
    }
    return view
  }
}
#endif
