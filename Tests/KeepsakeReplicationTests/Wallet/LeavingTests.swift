import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A device that leaves a player and joins another one: its former bank settles its wallet, and the new one pays.
@Suite struct LeavingTests {
  private static let home = ContainerID(high: 1, low: 1)
  private static let away = ContainerID(high: 2, low: 2)
  private static let third = ContainerID(high: 3, low: 3)

  /// A device, and the clouds that it meets: all are of one server, so that they accept each other's vouchers.
  private struct Traveller {
    var random = SeededGenerator(seed: 3)
    var clouds: [ContainerID: MemoryContainer] = [:]
    var device = SimulatedDevice()
    var notifications: [EngineNotification] = []
    private var now: Int64 = 1_000_000

    init(planting bugs: Set<PlantedBug> = []) throws {
      device.faults = Faults(planting: bugs)
      try DeviceCommit.opened(in: &device, using: &random)
    }

    private func rules(of container: ContainerID) -> BankRules {
      BankRules(seal: BankSeal(bank: container, keys: [Data("secret".utf8)]))
    }

    /// The player's gems by a bank.
    func money(at container: ContainerID) -> Int64 { clouds[container].map { Bank($0.bank()).balance("gems") } ?? 0 }

    var wallet: Wallet { Wallet(device.wallet() ?? WalletState(chain: ChainID(high: 0, low: 0))) }

    /// What is on its way.
    var pending: Int64 { device.formerWallets().reduce(wallet.vouched("gems")) { $0 + $1.pending("gems") } }

    /// Binds the store to a container, as the code around the engine does it.
    mutating func join(_ container: ContainerID) throws {
      if device.facts().container != nil { try DeviceCommit.moved(in: &device, using: &random) }
      var facts = device.facts()
      (facts.container, facts.caughtUp) = (container, false)
      device.setFacts(facts)
    }

    @discardableResult
    mutating func perform(_ kind: WalletOperation.Kind, _ amount: Int64) throws -> WalletOperation {
      let made = WalletOperation(
        id: OperationID(using: &random), kind: kind, currency: "gems", amount: amount, reason: "test")
      try DeviceCommit.apply(
        CommitDraft(wallet: [made]), now: now, writer: WriterID(1), in: &device, using: &random)
      return made
    }

    /// Syncs with the store's own cloud until nothing is left to send.
    mutating func sync(hasBank: Bool = true) throws {
      let container = try #require(device.facts().container)
      var engine = DeviceEngine()
      engine.hasBank = hasBank
      var effects = try engine.step(.started, now: now, in: &device, using: &random)
      while !effects.isEmpty {
        switch effects.removeFirst() {
        case .exchange(let number, let request):
          let response = try CloudAcceptance.exchange(
            request, now: now, rules: rules(of: container),
            in: &clouds[container, default: MemoryContainer(epoch: 1)], using: &random)
          effects += try engine.step(.answered(request: number, response), now: now, in: &device, using: &random)
        case .notify(let notification): notifications.append(notification)
        case .upload, .download, .wake: break
        }
      }
    }

    /// Asks the banks about all former wallets, as often as something changes.
    ///
    /// - Parameters:
    ///   - rounds: The most exchanges about one wallet.
    ///   - losesReplies: Whether no reply arrives.
    mutating func settle(rounds: Int = 20, losesReplies: Bool = false) throws {
      var known: Set<ChainID> = []
      while let former = device.formerWallets().first(where: { !known.contains($0.state.chain) }) {
        var next: ChainID? = former.state.chain
        for _ in 0..<rounds {
          guard let chain = next else { break }
          known.insert(chain)
          let offer = try #require(try DeviceCommit.offer(leavingOn: chain, in: &device))
          let reply = try CloudAcceptance.leave(
            with: offer, now: now, rules: rules(of: former.bank),
            in: &clouds[former.bank, default: MemoryContainer(epoch: 1)], using: &random)
          if losesReplies { break }
          let step = try DeviceCommit.received(reply, in: &device, using: &random)
          notifications += step.notifications
          next = step.next
        }
      }
    }

    /// Returns whether a bank has an operation that another one has, too.
    var isOfferedTwice: Bool {
      var known: Set<OperationID> = []
      for cloud in clouds.values {
        guard known.isDisjoint(with: cloud.decisions.keys) else { return true }
        known.formUnion(cloud.decisions.keys)
      }
      return false
    }
  }

  /// A device at home with 130 gems in the bank, of which 30 were paid for a quest, and 5 that no bank knows.
  private func atHome(planting bugs: Set<PlantedBug> = []) throws -> Traveller {
    var traveller = try Traveller(planting: bugs)
    try traveller.join(Self.home)
    try traveller.perform(.earn, 100)
    try traveller.perform(.claim(key: "quest"), 30)
    try traveller.sync()
    try traveller.perform(.earn, 5)
    return traveller
  }

  @Test("money arrives at the new player's bank, and no operation is ever offered to two banks")
  func join() throws {
    var traveller = try atHome()
    #expect(traveller.device.wallet()?.bank == Self.home)
    try traveller.join(Self.away)
    #expect(traveller.wallet.total("gems") == 0 && traveller.pending == 135)
    try traveller.sync()
    #expect(traveller.money(at: Self.away) == 0, "the game goes on meanwhile")
    try traveller.settle()
    #expect(traveller.device.formerWallets().isEmpty && traveller.pending == 135)
    try traveller.sync()
    #expect(traveller.money(at: Self.home) == 0 && traveller.money(at: Self.away) == 135)
    #expect(traveller.wallet.spendable("gems") == 135 && traveller.pending == 0)
    #expect(!traveller.isOfferedTwice && traveller.clouds[Self.away]?.paidClaims == ["quest"])
    #expect(traveller.device.wallet()?.bank == Self.away)
  }

  @Test("a wallet that is put aside keeps nothing for a purchase that was being made")
  func needs() throws {
    var traveller = try atHome()
    var wallet = traveller.wallet
    wallet.need(120, of: "gems")
    traveller.device.setWallet(wallet.state)
    try traveller.join(Self.away)
    let former = try #require(traveller.device.formerWallets().first)
    #expect(former.state.needs.isEmpty && traveller.wallet.state.needs.isEmpty)
    try traveller.settle()
    #expect(traveller.device.formerWallets().isEmpty && traveller.pending == 135)
  }

  @Test("with the bug that offers to a second bank, both have the operation")
  func bug() throws {
    var traveller = try atHome(planting: [.offerToSecondBank])
    try traveller.join(Self.away)
    try traveller.sync()
    #expect(traveller.isOfferedTwice)
  }

  @Test("a reply that is lost is asked for again, and the money arrives once")
  func lostReply() throws {
    var traveller = try atHome()
    try traveller.join(Self.away)
    try traveller.settle(losesReplies: true)
    #expect(traveller.money(at: Self.home) == 0 && traveller.pending == 135)
    for _ in 1...2 {
      try traveller.settle()
      try traveller.sync()
    }
    #expect(traveller.money(at: Self.away) == 135 && traveller.wallet.total("gems") == 135)
  }

  @Test("operations that no bank was ever offered go to the new one under their ids, and nothing is left behind")
  func neverOffered() throws {
    var traveller = try Traveller()
    try traveller.join(Self.home)
    let earned = try traveller.perform(.earn, 100)
    try traveller.join(Self.away)
    #expect(traveller.device.formerWallets().isEmpty)
    try traveller.sync()
    #expect(traveller.clouds[Self.away]?.decision(on: earned.id)?.verdict == .accepted)
    #expect(traveller.money(at: Self.away) == 100 && traveller.clouds[Self.home] == nil)
  }

  @Test("a cloud without a bank is offered no wallet: its operations go to the bank that the store meets later")
  func folder() throws {
    var traveller = try Traveller()
    try traveller.join(Self.home)
    let earned = try traveller.perform(.earn, 100)
    try traveller.sync(hasBank: false)
    #expect(traveller.device.wallet()?.isBound == false && traveller.wallet.total("gems") == 100)
    #expect(traveller.clouds[Self.home]?.decisions.isEmpty == true)
    try traveller.join(Self.away)
    #expect(traveller.device.formerWallets().isEmpty)
    try traveller.sync()
    #expect(traveller.clouds[Self.away]?.decision(on: earned.id)?.verdict == .accepted)
  }

  @Test("a wallet of an older version that a folder was offered goes to the new bank; one that a bank answered doesn't")
  func olderVersion() throws {
    var traveller = try Traveller()
    try traveller.join(Self.home)
    try traveller.perform(.earn, 100)
    var state = traveller.wallet.state
    state.isBound = true
    traveller.device.setWallet(state)
    try traveller.join(Self.away)
    #expect(traveller.device.formerWallets().isEmpty && traveller.wallet.total("gems") == 100)
    try traveller.sync()
    state = traveller.wallet.state
    state.bank = nil
    traveller.device.setWallet(state)
    try traveller.join(Self.third)
    #expect(traveller.device.formerWallets().map(\.bank) == [Self.away])
  }

  @Test("a device that moves on before its first bank has answered takes everything along")
  func twice() throws {
    var traveller = try atHome()
    try traveller.join(Self.away)
    try traveller.join(Self.third)
    try traveller.settle()
    try traveller.sync()
    #expect(traveller.money(at: Self.third) == 135 && traveller.money(at: Self.home) == 0)
  }

  @Test("a voucher for a player that the device has left again is paid there, and the money follows the device")
  func throughAnother() throws {
    var traveller = try atHome()
    try traveller.join(Self.away)
    // The bank has issued the voucher, for the bank there.
    try traveller.settle(losesReplies: true)
    try traveller.join(Self.third)
    #expect(traveller.device.formerWallets().map(\.bank) == [Self.home, Self.away])
    try traveller.settle()
    try traveller.sync()
    #expect(traveller.device.formerWallets().isEmpty && traveller.money(at: Self.third) == 135)
    #expect(traveller.money(at: Self.home) == 0 && traveller.money(at: Self.away) == 0)
  }

  @Test("a device that comes back finds its money where it was")
  func back() throws {
    var traveller = try atHome()
    try traveller.join(Self.away)
    try traveller.join(Self.home)
    try traveller.settle()
    try traveller.sync()
    #expect(traveller.money(at: Self.home) == 135 && traveller.wallet.spendable("gems") == 135)
  }

  @Test("a copy that joins, too, brings what it has beside the other, and the rest isn't paid twice")
  func copy() throws {
    var traveller = try atHome()
    var copy = traveller.device
    try traveller.join(Self.away)
    try traveller.settle()
    try traveller.sync()
    swap(&traveller.device, &copy)
    try traveller.perform(.earn, 7)
    try traveller.join(Self.away)
    try traveller.settle()
    for _ in 1...2 { try traveller.sync() }
    #expect(traveller.device.formerWallets().isEmpty && traveller.money(at: Self.away) == 142)
    #expect(!traveller.isOfferedTwice && traveller.money(at: Self.home) == 0)
  }

  @Test("a guest's wallet that is adopted again, from a restored copy, is paid once")
  func adoptedTwice() throws {
    var guest = try atHome()
    let before = guest.device
    var account = try Traveller()
    account.clouds = guest.clouds
    try account.join(Self.away)
    for round in 1...3 {
      // Step 1 of an adoption: what the guest's store does.
      guest.device = before
      try DeviceCommit.leaveBank(in: &guest.device, using: &guest.random)
      try DeviceCommit.adopt(guest.device.formerWallets(), in: &account.device)
      try DeviceCommit.adopt(guest.device.formerWallets(), in: &account.device)
      #expect(account.device.formerWallets().count == 1, "round \(round)")
      try account.settle()
      try account.sync()
      #expect(account.money(at: Self.away) == 135 && account.wallet.total("gems") == 135, "round \(round)")
    }
  }

  @Test("a guest's store that was set back, played on and is adopted before its bank was asked brings that, too")
  func adoptedAgainWithMore() throws {
    var guest = try atHome()
    let before = guest.device
    var account = try Traveller()
    account.clouds = guest.clouds
    try account.join(Self.away)
    try DeviceCommit.leaveBank(in: &guest.device, using: &guest.random)
    try DeviceCommit.adopt(guest.device.formerWallets(), in: &account.device)
    guest.device = before
    let earned = try guest.perform(.earn, 7)
    try guest.perform(.spend, 2)
    try DeviceCommit.leaveBank(in: &guest.device, using: &guest.random)
    for _ in 1...2 { try DeviceCommit.adopt(guest.device.formerWallets(), in: &account.device) }
    #expect(account.device.formerWallets().count == 1)
    try account.settle()
    try account.sync()
    #expect(account.money(at: Self.away) == 140 && account.money(at: Self.home) == 0)
    #expect(account.clouds[Self.home]?.decision(on: earned.id)?.verdict == .accepted)
    #expect(account.device.formerWallets().isEmpty && account.wallet.total("gems") == 140)
  }

  @Test("thousands of operations that the former bank doesn't know are settled there, batch by batch")
  func many() throws {
    var traveller = try atHome()
    for _ in 1...1_200 { try traveller.perform(.earn, 1) }
    try traveller.join(Self.away)
    try traveller.settle()
    try traveller.sync()
    #expect(traveller.money(at: Self.away) == 1_335 && traveller.device.formerWallets().isEmpty)
  }

  @Test("what is declined by the former bank is told, and a wallet that is given up says what is lost")
  func losses() throws {
    var traveller = try atHome()
    let claim = try traveller.perform(.claim(key: "quest 2"), 9)
    try traveller.join(Self.away)
    #expect(traveller.pending == 144)
    let chain = try #require(traveller.device.formerWallets().first?.state.chain)
    var given = traveller
    #expect(try DeviceCommit.giveUp(chain, in: &given.device)?.amounts == ["gems": 144])
    #expect(try DeviceCommit.giveUp(chain, in: &given.device) == nil && given.device.formerWallets().isEmpty)
    try traveller.settle()
    let decided = traveller.notifications.contains { notification in
      if case .decisions(let decisions) = notification { decisions.contains { $0.operation == claim } } else { false }
    }
    #expect(decided)
  }

  @Test("a voucher that the bank declines is removed, and the game is told what is lost")
  func declined() throws {
    var traveller = try Traveller()
    try traveller.join(Self.away)
    var state = traveller.wallet.state
    let forged = WalletVoucher(
      bank: Self.home, chain: ChainID(high: 0, low: 9), receiver: Self.away, amounts: ["gems": 50])
    state.vouchers = [forged]
    traveller.device.setWallet(state)
    try traveller.sync()
    let lost = traveller.notifications.compactMap { notification -> [String: Int64]? in
      if case .moneyLost(let lost) = notification { lost.amounts } else { nil }
    }
    #expect(lost == [["gems": 50]] && traveller.wallet.state.vouchers.isEmpty)
    #expect(traveller.money(at: Self.away) == 0)
  }

  @Test("what a copy of the store has taken to another player is reported as lost, once, and nothing is left to settle")
  func elsewhere() throws {
    var traveller = try atHome()
    let backup = traveller.device
    try traveller.join(Self.away)
    try traveller.settle()
    #expect(traveller.money(at: Self.home) == 0)
    traveller.device = backup
    try traveller.join(Self.third)
    for _ in 1...2 { try traveller.settle() }
    let lost = traveller.notifications.compactMap { notification -> [String: Int64]? in
      if case .moneyLost(let lost) = notification { lost.amounts } else { nil }
    }
    #expect(lost == [["gems": 135]] && traveller.device.formerWallets().isEmpty && traveller.pending == 0)
  }

  @Test("a reply about another chain, of another bank, or with impossible amounts settles nothing")
  func strangeReplies() throws {
    var traveller = try atHome()
    try traveller.join(Self.away)
    let former = try #require(traveller.device.formerWallets().first)
    let chain = former.state.chain
    func voucher(_ change: (inout WalletVoucher) -> Void) -> WalletVoucher {
      var voucher = WalletVoucher(bank: Self.home, chain: chain, receiver: Self.away, amounts: ["gems": 5])
      change(&voucher)
      return voucher
    }
    let strange = [
      voucher { $0.bank = Self.third }, voucher { $0.amounts = ["gems": -5] },
      voucher { $0.chain = ChainID(high: 0, low: 5) },
    ]
    for voucher in strange {
      var (wallet, random) = (former, traveller.random)
      wallet.receiver = Self.away
      let change = wallet.receive(
        WalletReply(chain: chain, state: .closed(common: former.state.head), voucher: voucher), using: &random)
      #expect(change.voucher == nil && !change.isSettled)
    }
    var (wallet, random) = (former, traveller.random)
    let other = ChainID(high: 0, low: 5)
    let reply = WalletReply(chain: other, state: .closed(common: former.state.head), voucher: voucher { _ in })
    #expect(!wallet.receive(reply, using: &random).isProgress && wallet == former)
  }
}
