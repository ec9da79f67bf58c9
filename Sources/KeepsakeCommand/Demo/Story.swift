#if Cloud
import FlowerGarden
import Foundation
import KeepsakeReplication

/// The Flower Garden story: what two devices, a new phone, a copy and a fresh device go through, reported as it
/// happens, with every promise checked by reading back.
struct Story {
  /// A promise, and what was seen of it.
  struct Promise: Codable {
    var promise: String
    var seen: String
    var kept: Bool
  }

  let folder: URL
  /// The server's data folder.
  let data: URL
  let server: URL
  let appKey: String
  let issuer: DemoIssuer
  /// Prints one line of the story.
  let report: (String) -> Void
  private(set) var promises: [Promise] = []
  /// What the story has made so far, and what every device must show in the end: counted here, not read from a device.
  private var flowers: Set<String> = []
  private var waterings = 0
  var gems: Int64 = 0
  var goods: [String: Int] = [:]
  private var journal = 0

  init(
    folder: URL, data: URL, server: URL, appKey: String, issuer: DemoIssuer, report: @escaping (String) -> Void
  ) {
    self.folder = folder
    self.data = data
    self.server = server
    self.appKey = appKey
    self.issuer = issuer
    self.report = report
  }

  /// - Parameter forger: An issuer that the server doesn't know.
  mutating func play(forger: DemoIssuer) throws {
    let phone = try device("phone")
    let tablet = try device("tablet")
    try plantAndSee(phone, tablet)
    try playOffline(phone, tablet)
    try spendOffline(phone, tablet)
    try buyWithAllOfIt(phone, tablet)
    let newPhone = try loseThePhone(phone, tablet)
    try samePot(phone, tablet)
    try killWhileSaving(phone)
    let twin = try copyThePhone(phone, others: [tablet, newPhone])
    let guest = try guestJoins([phone, tablet, newPhone, twin])
    let all = [phone, tablet, newPhone, twin, guest]
    try freshDevice(all)
    for device in all { try device.quit() }
    try comeBack()
    try signIn(forger: forger)
    try share()
  }

  func device(_ name: String) throws -> DemoDevice {
    try DemoDevice(name: name, store: folder.appending(path: name))
  }

  mutating func promise(_ text: String, seen: String, kept: Bool) {
    promises.append(Promise(promise: text, seen: seen, kept: kept))
    report("  \(kept ? "✓" : "✗") \(text): \(seen)")
  }

  // MARK: Chapters

  private mutating func plantAndSee(_ phone: DemoDevice, _ tablet: DemoDevice) throws {
    report("\n1. A phone and a tablet")
    try phone.send(.connect(url: server, appKey: appKey))
    try phone.send(.claimStarterGift)
    try phone.send(.plant(pot: "windowsill", flower: "tulip"))
    try phone.send(.sync)
    flowers = ["tulip", "rose"]
    gems = Int64(FlowerGarden.starterGems)
    report("  The phone registers, claims its \(gems) starter gems and plants a tulip on the windowsill.")

    guard let code = try phone.send(.pairingCode).code else {
      throw DemoDevice.Refused(device: "phone", why: "no pairing code came")
    }
    try tablet.send(.connect(url: server, appKey: appKey))
    try tablet.send(.join(code: code))
    let joined = try tablet.wait(for: .flower("tulip", inPot: "windowsill"))
    report("  The tablet joins with the code \(code)\(joined ? " and has the tulip" : "").")

    let planting = ContinuousClock.now
    try phone.send(.plant(pot: "windowsill", flower: "rose"))
    let arrived = try tablet.wait(for: .flower("rose", inPot: "windowsill"))
    promise(
      "what is planted on one device is seen on the other",
      seen: arrived
        ? "a rose on the tablet \(Self.milliseconds(since: planting)) after the phone began to plant it"
        : "no rose within 20 s",
      kept: joined && arrived)
  }

  private mutating func playOffline(_ phone: DemoDevice, _ tablet: DemoDevice) throws {
    report("\n2. Airplane mode on both")
    try phone.send(.airplaneMode(true))
    try tablet.send(.airplaneMode(true))
    try phone.send(.reachLevel(6))
    for seed in ["orchid", "lily"] { try phone.send(.unlock(seed: seed)) }
    try tablet.send(.reachLevel(2))
    try tablet.send(.unlock(seed: "cactus"))
    report("  The phone reaches level 6 and unlocks orchid and lily; the tablet, later, level 2 and cactus.")

    try phone.send(.airplaneMode(false))
    try phone.send(.sync)
    try tablet.send(.airplaneMode(false))
    try tablet.send(.sync)
    report("  Both are online again, the phone first.")
    let arrived = try [phone, tablet].map {
      try $0.wait(for: .level(atLeast: 6)) && $0.wait(for: .seeds(["cactus", "lily", "orchid"]))
    }
    let views = try [phone, tablet].map { try $0.readBack() }

    promise(
      "level 6 is never overwritten by a later level 2",
      seen: "level " + views.map { String($0.level) }.joined(separator: " and "),
      kept: arrived.allSatisfy(\.self) && views.allSatisfy { $0.level == 6 })
    promise(
      "seeds unlocked on either device are unlocked on both",
      seen: views.map { $0.seeds.joined(separator: ", ") }.joined(separator: " | "),
      kept: views.allSatisfy { $0.seeds == ["cactus", "lily", "orchid"] })
  }

  private mutating func samePot(_ phone: DemoDevice, _ tablet: DemoDevice) throws {
    report("\n6. The same pot changed on both")
    try phone.send(.airplaneMode(true))
    try tablet.send(.airplaneMode(true))
    try phone.send(.plant(pot: "windowsill", flower: "violet"))
    try phone.send(.water(pot: "windowsill", times: 3))
    try tablet.send(.plant(pot: "windowsill", flower: "daisy"))
    try tablet.send(.water(pot: "windowsill", times: 2))
    for device in [phone, tablet] {
      try device.send(.airplaneMode(false))
      try device.send(.sync)
    }
    flowers.formUnion(["violet", "daisy"])
    let expected = 5
    let merged = try [phone, tablet].map { try $0.wait(for: .waterings(expected, ofPot: "windowsill")) }
    let pots = try [phone, tablet].map { try $0.readBack().pots["windowsill"] }
    promise(
      "both versions are kept",
      seen: pots.map { "\($0?.heads ?? 0) heads of \($0?.versions ?? 0) versions" }.joined(separator: " | "),
      kept: pots.allSatisfy { $0?.heads == 2 })
    promise(
      "they are merged field by field",
      seen: pots.map { "\(($0?.flowers ?? []).joined(separator: ", ")), watered \($0?.waterings ?? 0) times" }.joined(
        separator: " | "),
      kept: merged.allSatisfy(\.self)
        && pots.allSatisfy { Set($0?.flowers ?? []) == flowers && $0?.waterings == expected })

    try tablet.send(.water(pot: "windowsill", times: 1))
    try tablet.send(.sync)
    waterings = expected + 1
    let settled = try [phone, tablet].map { try $0.wait(for: .waterings(expected + 1, ofPot: "windowsill")) }
    let heads = try [phone, tablet].map { try $0.readBack().pots["windowsill"]?.heads ?? 0 }
    promise(
      "the next save settles the conflict",
      seen: "\(heads.map(String.init).joined(separator: " and ")) head",
      kept: settled.allSatisfy(\.self) && heads == [1, 1])
  }

  private mutating func killWhileSaving(_ phone: DemoDevice) throws {
    report("\n7. The battery dies in the middle of saving")
    var worst: String?
    var last = 0
    let kills = 10
    for number in 1...kills {
      last = try phone.killWhileSaving(afterMilliseconds: 20 + number * 37 % 200)
      try phone.restart()
      let found = try phone.readBack().journal
      if found < last { worst = "acknowledged \(last), found \(found)" }
    }
    journal = last
    report(
      "  The phone was killed with SIGKILL \(CountText.of(kills, "time")) while it saved without pause, "
        + "\(CountText.of(last, "save")) in all."
    )
    promise(
      "what was acknowledged survives SIGKILL",
      seen: worst ?? "after each of \(kills) kills the last acknowledged save was there",
      kept: worst == nil && last > 0)
    try phone.send(.connect(url: server, appKey: appKey))
    try phone.send(.sync)
  }

  private mutating func copyThePhone(_ phone: DemoDevice, others: [DemoDevice]) throws -> DemoDevice {
    report("\n8. The phone's store copied to a second phone")
    try phone.send(.sync)
    try phone.quit()
    let copy = folder.appending(path: "second phone")
    try FileManager.default.copyItem(at: phone.store, to: copy)
    try phone.restart()
    let twin = try device("second phone")
    for device in [phone, twin] {
      try device.send(.connect(url: server, appKey: appKey))
      try device.send(.airplaneMode(true))
      try device.send(.earn(gems: 10))
      try device.send(.spend(gems: 5, on: "seeds"))
      try device.send(.water(pot: "windowsill", times: 1))
    }
    for device in [phone, twin] {
      try device.send(.airplaneMode(false))
      try device.send(.sync)
    }
    gems += 2 * 10 - 2 * 5
    goods["seeds", default: 0] += 2
    waterings += 2
    let all = [phone, twin] + others
    let arrived = try all.map {
      try $0.wait(for: .gems(total: gems)) && $0.wait(for: .goods(goods))
        && $0.wait(for: .waterings(waterings, ofPot: "windowsill"))
    }
    let views = try all.map { try $0.readBack() }
    let seen = views.map {
      "\(CountText.of($0.gems, "gem")), \(CountText.of($0.pots["windowsill"]?.waterings ?? 0, "watering"))"
    }
    promise(
      "a copied store counts nothing twice and loses nothing",
      seen: "\(seen.joined(separator: " | ")) (expected \(gems), \(waterings))",
      kept: arrived.allSatisfy(\.self)
        && views.allSatisfy { $0.gems == gems && $0.pots["windowsill"]?.waterings == waterings })
    return twin
  }

  private mutating func freshDevice(_ others: [DemoDevice]) throws {
    report("\n10. A fresh device pairs")
    guard let first = others.first, let code = try first.send(.pairingCode).code else {
      throw DemoDevice.Refused(device: "phone", why: "no pairing code came")
    }
    let expected = try first.readBack().shared
    let fresh = try device("laptop")
    try fresh.send(.connect(url: server, appKey: appKey))
    let joining = ContinuousClock.now
    try fresh.send(.join(code: code))
    let arrived = try fresh.wait(for: .everything(expected))
    promise(
      "a fresh device pairs and has everything",
      seen: arrived
        ? "all of it \(Self.milliseconds(since: joining)) after it gave the code" : "not all of it within 20 s",
      kept: arrived)
    let views = try (others + [fresh]).map { try $0.readBack().shared }
    let right = views.filter(showsTheStory).count
    promise(
      "all devices show the same, and all that the story made",
      seen:
        """
        \(right) of \(CountText.of(views.count, "device")): level \(expected.level), \
        \(CountText.of(expected.gems, "gem")), \(CountText.of(expected.seeds.count, "seed")), \
        \(CountText.of(flowers.count, "flower"))
        """,
      kept: right == views.count && views.allSatisfy { $0 == expected })
    try fresh.quit()
  }

  /// Whether a device shows what was done on all of them, whatever the others show.
  private func showsTheStory(_ view: GardenView) -> Bool {
    view.level == 6 && view.seeds == ["cactus", "lily", "orchid"] && view.gems == gems && view.goods == goods
      && view.journal >= journal && Set(view.pots["windowsill"]?.flowers ?? []) == flowers
      && view.pots["windowsill"]?.waterings == waterings
  }

  private static func milliseconds(since start: ContinuousClock.Instant) -> String {
    "\(Int((start.duration(to: .now) / .milliseconds(1)).rounded())) ms"
  }
}
#endif
