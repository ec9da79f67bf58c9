import BenchmarkKit
import GameWorlds

extension Figures {
  /// What can be judged of these figures; with a filter not all of it can.
  var goals: [Goal] {
    speed + byHand + hero + tiles + changed + sizes + capture
  }

  private var speed: [Goal] {
    let group = DungeonGroup.name
    let limits: [(String, String, Double, Double)] = [
      ("encode", "JSON", 100, 250), ("encode", "swift-protobuf", 10, 30), ("decode", "JSON", 60, 120),
      ("decode", "swift-protobuf", 4, 8),
    ]
    return limits.compactMap { action, peer, must, aim in
      ratio(group, action, of: "Keepsake", to: peer).map {
        Goal(
          what: "\(group): \(action), times as fast as \(peer)", must: must, aim: aim, reached: $0, direction: .atLeast,
          unit: "x")
      }
    }
  }

  private var byHand: [Goal] {
    guard measurement(DungeonGroup.name, "Keepsake", "encode") != nil else { return [] }
    return [DungeonGroup.byHandInCxx, DungeonGroup.byHandInSwift].map { peer in
      // What is written by hand is left out when the format has moved on; that must not pass for a goal that is met.
      let reached = ratio(DungeonGroup.name, "encode", of: peer, to: "Keepsake") ?? .infinity
      return Goal(
        what: "dungeon: encode, times as long as the same bytes \(peer)", must: 3, aim: 1.2, reached: reached,
        direction: .atMost, unit: "x"
      )
    }
  }

  private var hero: [Goal] {
    ["encode", "decode"].compactMap { action in
      ratio(HeroGroup.name, action, of: "Keepsake", to: "JSON").map {
        Goal(
          what: "one small object: \(action), times as fast as JSON", must: 30, aim: 60, reached: $0,
          direction: .atLeast, unit: "x")
      }
    }
  }

  private var tiles: [Goal] {
    ["encode", "decode"].flatMap { action in
      TilesGroup.kinds.compactMap { kind in
        ratio("\(TilesGroup.name) \(kind)", action, of: "memcpy", to: "Keepsake").map {
          Goal(
            what: "a million tiles, \(kind): \(action), times as long as memcpy", must: 1.5, aim: 1.05, reached: $0,
            direction: .atMost,
            unit: "x")
        }
      }
    }
  }

  private var changed: [Goal] {
    guard let same = measurement(DungeonGroup.name, "Keepsake", "decode"),
      let changed = measurement(DungeonGroup.name, "Keepsake", "decode, changed type")
    else { return [] }
    return [
      Goal(
        what: "dungeon: decode into a changed type, times as long as into the unchanged", must: 2.5, aim: 1.6,
        reached: changed.bestMicroseconds / same.bestMicroseconds, direction: .atMost, unit: "x")
    ]
  }

  private var sizes: [Goal] {
    let group = DungeonGroup.name
    guard let ours = measurement(group, "Keepsake", "encode"), let json = measurement(group, "JSON", "encode"),
      let bytes = ours.bytes, let jsonBytes = json.bytes, let packed = ours.zstdBytes, let jsonPacked = json.zstdBytes
    else { return [] }
    return [
      Goal(
        what: "\(group): times smaller than JSON", must: 4, aim: 4.5, reached: Double(jsonBytes) / Double(bytes),
        direction: .atLeast,
        unit: "x"),
      Goal(
        what: "\(group): times smaller than JSON, both under zstd -1", must: 1.4, aim: 2.2,
        reached: Double(jsonPacked) / Double(packed), direction: .atLeast, unit: "x"),
    ]
  }

  private var capture: [Goal] {
    guard let capture = measurement(CaptureGroup.name, "Keepsake", "capture") else { return [] }
    return [
      Goal(
        what: "capture of 10,000 heroes, in milliseconds", must: 2, aim: 0.4, reached: capture.bestMicroseconds / 1_000,
        direction: .atMost, unit: " ms")
    ]
  }
}
