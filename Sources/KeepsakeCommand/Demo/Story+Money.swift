#if Cloud
import FlowerGarden
import KeepsakeReplication

// The chapters about the player's gems, which are the same account on every device.
extension Story {
  mutating func spendOffline(_ phone: DemoDevice, _ tablet: DemoDevice) throws {
    report("\n3. The same gems spent on both, offline")
    let devices = [phone, tablet]
    // Rights to spend are granted in advance: both devices need some while they can still ask for them.
    let handedOut = try devices.allSatisfy { try $0.wait(for: .spendableGems(atLeast: 30)) }
    for device in devices { try device.send(.airplaneMode(true)) }
    let before = gems
    var wanted: Int64 = 0
    var refusals: [String] = []
    for device in devices {
      for thing in ["a sunshade", "a fountain"] {
        wanted += 30
        if let why = try device.ask(.spend(gems: 30, on: thing)).refused {
          refusals.append(why)
          report("  The \(device.name) wants \(thing) for 30 gems and is refused: \(why)")
        } else {
          gems -= 30
          goods[thing, default: 0] += 1
          report("  The \(device.name) buys \(thing) for 30 gems.")
        }
      }
    }
    for device in devices {
      try device.send(.airplaneMode(false))
      try device.send(.sync)
    }
    let (spent, arrived) = (before - gems, try haveMoneyAndGoods(devices))
    let views = try devices.map { try $0.readBack() }
    promise(
      "offline spends never overdraw",
      seen:
        "\(CountText.of(before, "gem")), \(wanted) wanted, \(spent) spent, "
        + views.map { String($0.gems) }.joined(separator: " and ") + " left",
      kept: handedOut && arrived && spent > 0 && spent <= before && views.allSatisfy { $0.gems == gems })
    promise(
      "a refused purchase states its reason",
      seen: refusals.first ?? "nobody was refused",
      kept: !refusals.isEmpty && refusals.allSatisfy { $0.contains("gems") })
    promise(
      "what was bought offline is seen on both",
      seen: views.map { Self.text($0.goods) }.joined(separator: " | "),
      kept: views.allSatisfy { $0.goods == goods } && !goods.isEmpty)
  }

  mutating func buyWithAllOfIt(_ phone: DemoDevice, _ tablet: DemoDevice) throws {
    report("\n4. A purchase with all gems of the player")
    let (thing, price, before) = ("a greenhouse", 35, gems)
    // More than the phone and the bank could pay without the tablet.
    let handedOut = try tablet.wait(for: .spendableGems(atLeast: 10))
    let spendable = try phone.readBack().spendableGems
    try tablet.send(.airplaneMode(true))
    let refusal = try phone.ask(.spendAsking(gems: price, on: thing, seconds: 2)).refused
    try tablet.send(.airplaneMode(false))
    report("  The phone wants \(thing) for \(price) of \(CountText.of(before, "gem")) while the tablet is off.")
    promise(
      "a refused purchase says which device holds the rest", seen: refusal ?? "it was not refused",
      kept: handedOut && refusal?.contains("on tablet") == true)

    let failure = try phone.ask(.spendAsking(gems: price, on: thing, seconds: 20)).refused
    if failure == nil {
      gems -= Int64(price)
      goods[thing, default: 0] += 1
      report("  The tablet is on again, and the phone buys \(thing).")
    }
    let arrived = try haveMoneyAndGoods([phone, tablet])
    promise(
      "a purchase gets the rest from bank and devices",
      seen: failure
        ?? "\(price) of \(CountText.of(before, "gem")), though the phone alone could spend \(spendable)",
      kept: failure == nil && spendable < price && arrived)
  }

  /// Returns the new phone.
  mutating func loseThePhone(_ phone: DemoDevice, _ tablet: DemoDevice) throws -> DemoDevice {
    report("\n5. The phone is lost, and found again")
    try phone.send(.earn(gems: 120))
    try phone.send(.sync)
    gems += 120
    let handedOut = try [phone, tablet].allSatisfy { try $0.wait(for: .spendableGems(atLeast: 25)) }
    let held = try phone.readBack().spendableGems
    try phone.send(.airplaneMode(true))
    report("  The phone, which can spend \(held) of \(CountText.of(gems, "gem")), is lost.")

    let expected = try tablet.readBack().shared
    guard let code = try tablet.send(.pairingCode).code else {
      throw DemoDevice.Refused(device: "tablet", why: "no pairing code came")
    }
    let newPhone = try device("new phone")
    try newPhone.send(.connect(url: server, appKey: appKey))
    try newPhone.send(.join(code: code))
    let joined = try newPhone.wait(for: .everything(expected))
    try tablet.send(.remove(device: phone.name))
    report("  A new phone joins with the code \(code)\(joined ? " and has everything" : ""); the lost one is removed.")

    // All but ten: more than there is without what the lost phone held.
    let (left, before) = (Int64(10), gems)
    let price = gems - left
    let failure = try newPhone.ask(.spendAsking(gems: Int(price), on: "a pond", seconds: 20)).refused
    if failure == nil {
      gems -= price
      goods["a pond", default: 0] += 1
    }
    let arrived = try haveMoneyAndGoods([tablet, newPhone])
    promise(
      "a lost device's money comes back when it's removed",
      seen: failure ?? "the new phone buys a pond for \(price) of \(CountText.of(before, "gem"))",
      kept: handedOut && joined && failure == nil && price > before - held && arrived)
    try find(phone, tablet, newPhone)
    return newPhone
  }

  /// The lost phone, which was removed and has bought things that nobody knew of, is one of the player's devices again.
  private mutating func find(_ phone: DemoDevice, _ tablet: DemoDevice, _ newPhone: DemoDevice) throws {
    let (covered, uncovered) = ((thing: "a birdhouse", price: 5), (thing: "a swing", price: 20))
    for (thing, price) in [covered, uncovered] { try phone.send(.spend(gems: price, on: thing)) }
    report(
      """
        Somebody has bought \(covered.thing) for \(covered.price) gems and \(uncovered.thing) for \(uncovered.price) \
      on the lost phone. It is found and switched on.
      """)
    try phone.send(.airplaneMode(false))
    let refusal = try phone.ask(.sync).refused
    promise(
      "a removed device is refused, and says why", seen: refusal ?? "it was not refused",
      kept: refusal?.contains("removed") == true)

    guard let code = try tablet.send(.pairingCode).code else {
      throw DemoDevice.Refused(device: "tablet", why: "no pairing code came")
    }
    try phone.send(.join(code: code))
    try phone.send(.sync)
    let before = gems
    gems -= Int64(covered.price)
    goods[covered.thing, default: 0] += 1
    let devices = [phone, tablet, newPhone]
    let arrived = try haveMoneyAndGoods(devices)
    let views = try devices.map { try $0.readBack() }
    promise(
      "what it bought is charged if the balance covers it",
      seen: "\(covered.thing) for \(covered.price) of \(before) gems, "
        + views.map { String($0.gems) }.joined(separator: ", ") + " left",
      kept: arrived && views.allSatisfy { $0.goods[covered.thing] == 1 })
    let taken = try phone.send(.takeBack).takenBack ?? []
    promise(
      "otherwise it is taken back, with a notice",
      seen: taken.isEmpty ? "no notice came" : "a notice to the phone: \(taken.joined(separator: ", "))",
      kept: taken == [uncovered.thing] && views.allSatisfy { $0.goods[uncovered.thing] == nil })
  }

  /// A guest, who has played on a tablet of its own and has a bank of its own, becomes one of the player's devices.
  /// Returns that tablet.
  mutating func guestJoins(_ others: [DemoDevice]) throws -> DemoDevice {
    report("\n9. A guest with money of its own joins")
    let guest = try device("guest tablet")
    let (reported, unreported) = (40, 2)
    try guest.send(.connect(url: server, appKey: appKey))
    try guest.send(.claimStarterGift)
    try guest.send(.earn(gems: reported))
    try guest.send(.sync)
    let gift = Int64(FlowerGarden.starterGems)
    let paid = try guest.wait(for: .gems(total: Int64(reported) + gift))
    try guest.send(.airplaneMode(true))
    try guest.send(.earn(gems: unreported))
    try guest.send(.airplaneMode(false))
    guard let code = try others.first?.send(.pairingCode).code else {
      throw DemoDevice.Refused(device: "phone", why: "no pairing code came")
    }
    try guest.send(.join(code: code))
    report("  It has \(reported) gems and the starter gift of \(gift) at its bank, and \(unreported) to report yet.")
    let before = gems
    gems += Int64(reported + unreported)
    let arrived = try haveMoneyAndGoods(others + [guest])
    promise(
      "a guest's money comes along, once, and no gift is paid twice",
      seen: "\(before) and \(reported + unreported) are \(try guest.readBack().gems) gems, with one starter gift",
      kept: paid && arrived)
    return guest
  }

  /// Waits until all these devices show the money and the goods of the story.
  private func haveMoneyAndGoods(_ devices: [DemoDevice]) throws -> Bool {
    try devices.map { try $0.wait(for: .gems(total: gems)) && $0.wait(for: .goods(goods)) }.allSatisfy(\.self)
  }

  private static func text(_ goods: [String: Int]) -> String {
    goods.sorted { $0.key < $1.key }.map { $0.value == 1 ? $0.key : "\($0.value) times \($0.key)" }
      .joined(separator: ", ")
  }
}
#endif
