import KeepsakeReplication
import KeepsakeSimulation

extension Lab {
  /// Two devices that share what the first one earned: 100 gems.
  static func rich() throws -> Lab {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    try lab.perform(0, .earn, 100)
    for index in [0, 1, 0, 1] { try lab.settle(index) }
    return lab
  }

  /// The player's gems, by the bank.
  var money: Int64 { Bank(cloud.bank()).balance("gems") }

  /// Asks the bank for what a purchase needs.
  mutating func need(_ amount: Int64, _ index: Int) {
    var wallet = wallet(index)
    wallet.need(amount, of: "gems")
    devices[index].storage.setWallet(wallet.state)
    devices[index].exchanges = 0
  }

  /// Adds a copy of device 0.
  mutating func copyStore(_ number: UInt64 = 77) {
    var copy = devices[0]
    copy.writer = WriterID(number)
    copy.engine = DeviceEngine()
    copy.notifications = []
    devices.append(copy)
  }

  /// Sets device 0 back to an older state of its store, as a backup does, and opens it again.
  mutating func setBack(to storage: SimulatedDevice) {
    devices[0].storage = storage
    devices[0].engine = DeviceEngine()
    devices[0].pending = []
  }

  /// Two devices that share 100 gems, of which the first spent 20 that its store, set back, doesn't know of.
  static func setBackAfterSpending() throws -> Lab {
    var lab = try Lab.rich()
    let old = lab.devices[0].storage
    try lab.perform(0, .spend, 20)
    try lab.settle(0)
    lab.setBack(to: old)
    return lab
  }

  /// What the bank told a device about its operations.
  func verdicts(_ index: Int) -> [WalletDecision.Verdict] {
    devices[index].notifications.flatMap { notification -> [WalletDecision.Verdict] in
      if case .decisions(let decisions) = notification { decisions.map(\.verdict) } else { [] }
    }
  }

  /// The game's server orders something.
  @discardableResult
  mutating func order(
    _ kind: BankOrder.Kind, _ amount: Int64, id: UInt64, goods: [String] = []
  ) throws -> Bank.OrderOutcome {
    let order = BankOrder(
      id: OperationID(high: 8, low: id), kind: kind, currency: "gems", amount: amount, reason: "support", goods: goods)
    return try CloudAcceptance.perform(order, now: now, rules: rules, in: &cloud, using: &random)
  }

  /// The game's server takes a purchase back.
  @discardableResult
  mutating func refund(_ purchase: OperationID) throws -> Bank.OrderOutcome {
    let order = BankOrder(refunding: purchase, reason: "support")
    return try CloudAcceptance.perform(order, now: now, rules: rules, in: &cloud, using: &random)
  }
}
