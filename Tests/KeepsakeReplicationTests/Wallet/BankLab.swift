import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Stores and the bank of their container, which a test sets back to a backup. The stores exchange as the engine does,
/// one offer at a time.
struct BankLab {
  static let container = ContainerID(high: 1, low: 1)
  static let keys = [Data("secret".utf8)]

  private var random = SeededGenerator(seed: 5)
  /// A value: a copy is a backup.
  var cloud = MemoryContainer(epoch: 1)
  var stores: [SimulatedDevice] = []
  var rules = BankRules(seal: BankSeal(bank: container, keys: keys))
  /// The most operations in one offer.
  var batch = Wallet.maximumBatch
  /// Whether the stores still have what the bank has settled.
  var hasLedgers = true

  init(stores count: Int, planting bugs: Set<PlantedBug> = []) {
    cloud.faults = Faults(planting: bugs)
    for _ in 0..<count {
      var store = SimulatedDevice()
      store.setWallet(WalletState(chain: ChainID(using: &random)))
      stores.append(store)
    }
  }

  /// Two stores with 100 gems: each may spend 34, and the bank has 32.
  static func rich(planting bugs: Set<PlantedBug> = []) throws -> BankLab {
    var lab = BankLab(stores: 2, planting: bugs)
    try lab.perform(0, .earn, 100)
    try lab.settle()
    return lab
  }

  // MARK: Looking

  func wallet(_ index: Int) -> Wallet {
    Wallet(stores[index].wallet() ?? WalletState(chain: ChainID(high: 0, low: 0)))
  }

  var bank: Bank { Bank(cloud.bank(), rules: rules) }
  var money: Int64 { bank.balance("gems") }
  var pool: Int64 { cloud.bank().pool["gems"] ?? 0 }
  func granted(_ index: Int) -> Int64? {
    cloud.bank().chains[wallet(index).state.chain]?.totals["gems"]?.granted
  }

  /// What the bank has decided, except about returned rights: a store that begins another chain doesn't return any.
  var verdicts: [OperationID: WalletDecision.Verdict] {
    cloud.decisions.filter { $0.value.operation.effect != .giveBack }.mapValues { $0.verdict }
  }

  var goods: [String: Int64] {
    Dictionary(uniqueKeysWithValues: cloud.goods(changedAfter: 0, limit: .max).map { ($0.name, $0.count) })
  }

  // MARK: Stores

  mutating func operation(_ kind: WalletOperation.Kind, _ amount: Int64, goods: [String] = []) -> WalletOperation {
    WalletOperation(
      id: OperationID(using: &random), kind: kind, currency: "gems", amount: amount, reason: "test", goods: goods)
  }

  @discardableResult
  mutating func perform(
    _ index: Int, _ kind: WalletOperation.Kind, _ amount: Int64, goods: [String] = []
  ) throws -> WalletOperation {
    let made = operation(kind, amount, goods: goods)
    var wallet = wallet(index)
    try wallet.perform(made)
    stores[index].setWallet(wallet.state)
    return made
  }

  /// Sets what a purchase on a store needs; nil for one that is made or given up.
  mutating func need(_ amount: Int64?, _ index: Int) {
    var wallet = wallet(index)
    wallet.need(amount, of: "gems")
    stores[index].setWallet(wallet.state)
  }

  // MARK: Exchanges

  func offer(_ index: Int) -> WalletOffer {
    wallet(index).offer(upTo: batch, knowingGoods: stores[index].goods().number)
  }

  @discardableResult
  mutating func answer(_ offer: WalletOffer, to index: Int = 0) throws -> WalletReply {
    try atBank { try $0.answer(offer, from: Lab.id(index), in: &$1) }
  }

  /// Does what the engine does with a reply.
  @discardableResult
  mutating func receive(_ reply: WalletReply, _ index: Int) -> Wallet.Change {
    let (store, hasLedgers) = (stores[index], hasLedgers)
    var wallet = wallet(index)
    var goods = store.goods()
    let change = wallet.receive(
      reply, using: &random, acknowledged: { hasLedgers ? store.acknowledgedOperations(after: $0) : .notKept },
      settled: { hasLedgers ? store.settledOperations(includingChain: $0) : [] })
    if wallet.state != store.wallet() { stores[index].setWallet(wallet.state) }
    if case .restored = reply.state { goods.number = 0 }
    if let changed = reply.goods { _ = goods.take(changed) }
    stores[index].setGoods(goods)
    stores[index].recordDecisions(change.decisions)
    stores[index].recordOrders(change.orders, areNews: change.areOrdersNews)
    return change
  }

  @discardableResult
  mutating func exchange(_ index: Int) throws -> WalletReply {
    let reply = try answer(offer(index), to: index)
    receive(reply, index)
    return reply
  }

  /// Lets these stores exchange, or all, until nothing changes any more.
  mutating func settle(_ indices: [Int]? = nil) throws {
    for _ in 0..<80 {
      let (before, bank) = (stores.map { $0.wallet() }, cloud.bank())
      for index in indices ?? Array(stores.indices) { try exchange(index) }
      if stores.map({ $0.wallet() }) == before, cloud.bank() == bank { return }
    }
    Issue.record("the exchanges never end")
  }

  // MARK: The bank

  private mutating func atBank<Result>(
    _ body: (inout Bank, inout MemoryContainer) throws -> Result
  ) throws -> Result {
    var bank = Bank(cloud.bank(), rules: rules, faults: cloud.faults)
    let result = try body(&bank, &cloud)
    cloud.setBank(bank.state)
    return result
  }

  /// Sets the bank back. If the backup isn't marked as one, nobody tells the bank.
  mutating func restore(_ backup: MemoryContainer, isMarked: Bool = true) {
    cloud = backup
    if isMarked { rules.epoch += 1 }
  }

  mutating func release() throws { try atBank { try $0.release(in: &$1) } }

  /// Removes a store's device.
  mutating func remove(_ index: Int) throws {
    let chain = wallet(index).state.chain
    try atBank { try $0.close([chain], in: &$1) }
  }

  /// The game's support grants something.
  mutating func grant(_ amount: Int64) throws {
    let order = BankOrder(
      id: OperationID(using: &random), kind: .grant, currency: "gems", amount: amount, reason: "support")
    try atBank { _ = try $0.perform(order, in: &$1) }
  }
}
