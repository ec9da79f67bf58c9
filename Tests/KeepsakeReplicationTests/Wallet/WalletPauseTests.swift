import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A device whose bank has replied twice without an effect leaves its wallet out for a while, and not for ever.
@Suite struct WalletPauseTests {
  private static let seal = BankSeal(bank: ContainerID(high: 1, low: 1), keys: [Data("secret".utf8)])

  /// Two devices whose bank was set back; the first one has shown what it has, and its claim has to wait.
  private func waiting() throws -> Lab {
    var lab = try Lab.rich()
    lab.rules = BankRules(seal: Self.seal, epoch: 1)
    try lab.perform(0, .claim(key: "gift"), 20)
    try lab.settle(0, .committed)
    #expect(Bank(lab.cloud.bank()).isFrozen && lab.wallet(0).pending("gems") == 20)
    return lab
  }

  private static func announced(_ seq: UInt64) -> EngineEvent { .announced(CloudEvent(seq: seq)) }

  @Test(
    "a claim that waited for another device's report is paid at the next event, poll or commit, without a restart",
    arguments: ["event", "poll", "commit"])
  func bankOpens(way: String) throws {
    var lab = try waiting()
    lab.now += 2_000
    try lab.settle(1, .woke)
    #expect(!Bank(lab.cloud.bank()).isFrozen && lab.wallet(0).pending("gems") == 20)
    switch way {
    case "event": try lab.settle(0, Self.announced(lab.cloud.position().seq))
    case "poll": try lab.settle(0, .woke)
    default: try lab.settle(0, .committed)
    }
    #expect(lab.wallet(0).pending("gems") == 0 && lab.wallet(0).total("gems") == 120 && lab.money == 120)
  }

  @Test("as long as the bank has no other reply, each of these costs one exchange, and an early event none of its own")
  func asksOnce() throws {
    var lab = try waiting()
    func exchanges(after event: EngineEvent) throws -> (count: Int, asked: Int) {
      let (before, requests) = (lab.devices[0].exchanges, lab.requests.count)
      try lab.settle(0, event)
      let asked = lab.requests[requests...].count { $0.wallet != nil }
      return (lab.devices[0].exchanges - before, asked)
    }
    var next = lab.cloud.position().seq + 1
    #expect(try exchanges(after: Self.announced(next)) == (1, 0))
    for event in [EngineEvent.woke, .committed, .woke] { #expect(try exchanges(after: event) == (1, 1)) }
    lab.now += 2_000
    next += 1
    #expect(try exchanges(after: Self.announced(next)) == (1, 1))
    #expect(lab.wallet(0).pending("gems") == 20)
  }

  @Test("an earning is reported while a claim, or a need that nobody meets, waits")
  func earning() throws {
    var lab = try waiting()
    lab.need(1_000, 0)
    try lab.settle(0, .committed)
    try lab.settle(1, .woke)
    try lab.perform(0, .earn, 5)
    try lab.settle(0, .committed)
    #expect(lab.money == 125 && !lab.wallet(0).hasUnreportedOperations)
  }

  @Test("a bank that asks for statements again and again, with ever later epochs, isn't followed without a pause")
  func asksWithoutEnd() throws {
    for isAccepted in [false, true] {
      var lab = try Lab.rich()
      try lab.perform(0, .earn, 5)
      var epoch: UInt64 = 0
      let count = try lab.countExchanges(after: .sync) { request, response in
        guard let offer = request.wallet else { return }
        let isAsking = !isAccepted || offer.proving == nil
        if isAsking { epoch += 1 }
        response.wallet = WalletReply(
          chain: offer.chain, state: isAsking ? .restored : .accepted(offer.base), statement: offer.statement + 1,
          epoch: epoch)
      }
      #expect(count <= 4)
      lab.now += 60_000
      let again = try lab.countExchanges(after: .woke) { request, response in
        epoch += 1
        response.wallet = request.wallet.map { WalletReply(chain: $0.chain, state: .restored, epoch: epoch) }
      }
      #expect(again <= 3)
    }
  }
}
