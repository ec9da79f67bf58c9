import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Purchases beyond what a device may spend by itself.
@Suite struct WalletNeedTests {
  @Test("one device alone may spend everything")
  func aloneHoldsAll() throws {
    var lab = try Lab()
    try lab.settle(0)
    try lab.perform(0, .claim(key: "gift"), 30)
    try lab.perform(0, .earn, 70)
    try lab.settle(0)
    #expect(lab.wallet(0).spendable("gems") == 100)
  }

  @Test("a device gets in one exchange what a purchase needs beyond its share, if the bank holds it")
  func needIsGranted() throws {
    var lab = try Lab.rich()
    lab.need(66, 1)
    try lab.settle(1)
    #expect(lab.wallet(1).spendable("gems") == 66 && lab.devices[1].exchanges == 1)
    #expect(lab.wallet(1).state.held.isEmpty)
  }

  @Test("what other devices hold is recalled for a purchase, and the reply says who holds it")
  func needIsRecalled() throws {
    var lab = try Lab.rich()
    lab.need(80, 1)
    try lab.settle(1)
    #expect(lab.wallet(1).spendable("gems") == 66 && lab.devices[1].exchanges == 1)
    let holding = WalletHolding(device: Lab.id(0), amount: 34, seenMilliseconds: 0)
    #expect(lab.wallet(1).state.held == ["gems": [holding]])
    // It can't be met by asking again.
    #expect(!lab.wallet(1).hasQuestions)
    try lab.settle(0)
    #expect(lab.wallet(0).spendable("gems") == 20)
    try lab.settle(1)
    #expect(lab.wallet(1).spendable("gems") == 80)
    try lab.perform(1, .spend, 80)
    #expect(lab.wallet(1).state.needs.isEmpty, "the purchase is made")
    for _ in 0..<3 { for index in 0..<2 { try lab.settle(index) } }
    #expect(lab.money == 20)
    for index in 0..<2 { #expect(lab.wallet(index).total("gems") == 20) }
  }

  @Test("of two purchases that together cost more than there is, the one that asked first gets the money")
  func twoNeeds() throws {
    var lab = try Lab.rich()
    lab.need(80, 0)
    try lab.settle(0)
    lab.need(80, 1)
    for _ in 0..<3 { for index in [1, 0] { try lab.settle(index) } }
    #expect(lab.wallet(0).spendable("gems") == 80)
    try lab.perform(0, .spend, 80)
    for _ in 0..<3 { for index in [0, 1] { try lab.settle(index) } }
    #expect(lab.money == 20 && lab.wallet(1).spendable("gems") == 20)
  }

  @Test("a need that nobody repeats is void after a minute, and one of an earlier start of the game at once")
  func needsExpire() throws {
    var lab = try Lab.rich()
    lab.need(100, 1)
    try lab.settle(1)
    lab.now += Bank.needMilliseconds
    try lab.perform(0, .earn, 1)
    try lab.settle(0)
    #expect(lab.wallet(0).spendable("gems") == 34, "only what it has above its share is recalled")
    try DeviceCommit.opened(in: &lab.devices[1].storage, using: &lab.random)
    #expect(lab.wallet(1).state.needs.isEmpty)
  }
}
