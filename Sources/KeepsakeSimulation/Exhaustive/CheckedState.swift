import KeepsakeReplication

/// Two devices, their backups, the messages under way and the banks. Small, because everything large in it is shared.
struct CheckedState: Sendable {
  struct Device: Sendable {
    var store: CheckedStore
    var backup: CheckedStore?
    /// How many checkpoints were made here. A device that is set back makes others.
    var made: UInt8 = 0
    /// How many were made on the way to the start.
    var madeBefore: UInt8 = 0
    /// How many random numbers were drawn here.
    var drawn: UInt32 = 0
    /// How often it registered with the cloud.
    var registration: UInt8 = 1
    var isRemoved = false
  }

  /// A request under way, or a reply.
  struct Message: Sendable {
    let device: UInt8
    let registration: UInt8
    let offer: CheckedOffer
    /// The bank that it is for.
    let place: UInt8
    /// Whether it is about a former wallet. Beside these, a device sends one request at a time about its own.
    let isLeaving: Bool
    /// Whether the device is still waiting for the reply.
    var isAwaited = true
    /// Whether the device still has the store that sent it.
    var isOfStore = true
    /// Nil for a request.
    var reply: Reply?
  }

  struct Reply: Sendable {
    let reply: WalletReply
    /// Of the bank and the offer, which determine it.
    let digest: StateDigest
  }

  private var first: Device
  private var second: Device
  var bank = CheckedBank(place: 0)
  /// The bank of another player, in whose container the second device is at first if the start says so.
  var secondBank = CheckedBank(place: 1)
  var bankBackup: CheckedBank?
  var messages: [Message] = []
  // How much of what is limited was used.
  var losses: UInt8 = 0
  var copies: UInt8 = 0
  var removals: UInt8 = 0
  var needs: UInt8 = 0
  var pauses: UInt8 = 0
  var restores: UInt8 = 0
  var moves: UInt8 = 0
  /// How many installs there have been.
  var installs: UInt8 = 2
  /// Chains of stores that were replaced by another install's, or of earlier states of them: what they hold stays there
  /// until the device is removed.
  var abandoned: [ChainID] = []

  /// Two fresh installs.
  ///
  /// - Parameter place: The bank of the second one.
  init(_ options: ExhaustiveOptions, secondAt place: Int) {
    func fresh(_ slot: Int, _ place: Int) -> Device {
      var random = DrawnNumbers(slot: slot, drawn: 0)
      let wallet = WalletState(chain: ChainID(using: &random))
      let membership = CheckedStore.Membership(place: place)
      let store = CheckedStore(wallet, membership: membership, install: UInt8(slot), batch: options.batch)
      return Device(store: store, drawn: random.drawn)
    }
    (first, second) = (fresh(0, 0), fresh(1, place))
  }

  subscript(slot: Int) -> Device {
    get { slot == 0 ? first : second }
    set { if slot == 0 { first = newValue } else { second = newValue } }
  }

  subscript(bankAt place: Int) -> CheckedBank {
    get { place == 0 ? bank : secondBank }
    set { if place == 0 { bank = newValue } else { secondBank = newValue } }
  }

  /// The bank of the device's own container.
  func bank(of slot: Int) -> CheckedBank { self[bankAt: self[slot].store.membership.place] }

  var digest: StateDigest {
    var digest = StateDigest(tag: 4)
    for device in [first, second] {
      digest.add(device.store.digest)
      digest.add(device.backup?.digest ?? StateDigest())
      digest.add(UInt64(device.made) << 48 | UInt64(device.drawn) << 16 | UInt64(device.registration) << 8)
      digest.add(device.isRemoved)
    }
    digest.add(bank.digest)
    digest.add(secondBank.digest)
    digest.add(bankBackup?.digest ?? StateDigest())
    digest.add(messages.count)
    for message in messages {
      digest.add(UInt64(message.device) << 16 | UInt64(message.place) << 8 | UInt64(message.registration))
      digest.add(message.isLeaving)
      digest.add(message.offer.digest)
      digest.add(message.isAwaited)
      digest.add(message.isOfStore)
      digest.add(message.reply?.digest ?? StateDigest())
    }
    for count in [losses, copies, removals, needs, pauses, restores, moves, installs] { digest.add(UInt64(count)) }
    digest.addUnordered(abandoned) { $0.add($1) }
    return digest
  }

  /// What matters once every message has arrived.
  var restDigest: StateDigest {
    var digest = StateDigest(tag: 5)
    for device in [first, second] {
      digest.add(device.store.digest)
      digest.add(UInt64(device.drawn) << 8 | UInt64(device.registration))
    }
    digest.add(bank.digest)
    digest.add(secondBank.digest)
    digest.add(restores > 0)
    digest.add(moves > 0 && copies > 0)
    digest.addUnordered(abandoned) { $0.add($1) }
    return digest
  }

  /// The device's name in the cloud.
  func id(of slot: Int) -> DeviceID { Self.id(of: slot, registration: self[slot].registration) }

  static func id(of slot: Int, registration: UInt8) -> DeviceID {
    DeviceID(high: 0xD0 + UInt64(slot), low: UInt64(registration))
  }

  /// Adds a request that is held up.
  mutating func send(_ offer: CheckedOffer, from slot: Int, to place: Int, isLeaving: Bool) {
    stopWaiting(slot, isLeaving: isLeaving)
    messages.append(
      Message(
        device: UInt8(slot), registration: self[slot].registration, offer: offer, place: UInt8(place),
        isLeaving: isLeaving))
    losses += 1
  }

  /// The device waits for no reply any more.
  ///
  /// - Parameter isLeaving: About a former wallet, or about its own; nil for either.
  mutating func stopWaiting(_ slot: Int, isLeaving: Bool? = nil) {
    for index in messages.indices where Int(messages[index].device) == slot {
      if isLeaving ?? messages[index].isLeaving == messages[index].isLeaving { messages[index].isAwaited = false }
    }
  }

  /// Replaces the device's store. What an install that nobody has any more held stays on its chain; so does what one
  /// held that was set back to before it joined another player, or adopted a wallet.
  mutating func replaceStore(of slot: Int, with store: CheckedStore) {
    let old = self[slot].store
    let isOfInstall = old.install == store.install
    if !isOfInstall || old.membership.changes != store.membership.changes {
      let own = (Array(bank.state.chains.keys) + Array(secondBank.state.chains.keys))
        .filter { CheckedWords.slot(of: $0) == slot }
      let kept = isOfInstall ? store.chains : []
      let left = old.wallets.flatMap { [$0.chain, $0.follows].compactMap(\.self) }
      for chain in own + left where !abandoned.contains(chain) && !kept.contains(chain) { abandoned.append(chain) }
    }
    self[slot].store = store
    stopWaiting(slot)
    messages.removeAll { Int($0.device) == slot && $0.reply != nil }
    for index in messages.indices where Int(messages[index].device) == slot { messages[index].isOfStore = false }
  }

  /// Has the devices make as many checkpoints as before the start.
  mutating func forgetCheckpoints() {
    for slot in [0, 1] { (self[slot].madeBefore, self[slot].made) = (self[slot].madeBefore + self[slot].made, 0) }
  }

  // MARK: Words

  /// The state in a line for each of its parts.
  var words: [String] {
    let devices = [0, 1].map { slot in
      let (device, wallet) = (self[slot], Wallet(self[slot].store.wallet))
      let state = wallet.state
      var parts = [
        "\(CheckedWords.device(slot)): \(CheckedWords.of(state.chain))"
          + (state.follows.map { " after \(CheckedWords.of($0))" } ?? ""),
        "\(state.acknowledged.count) of \(state.head.count) acknowledged", "statement \(state.statement)",
      ]
      for currency in wallet.currencies {
        parts.append("\(wallet.spendable(currency)) of \(wallet.total(currency)) \(currency)")
      }
      for (name, list) in [("late", state.late), ("waiting", state.waiting)] where !list.isEmpty {
        parts.append("\(name): \(CheckedWords.of(list))")
      }
      if !state.needs.isEmpty { parts.append("needs \(CheckedWords.of(state.needs))") }
      if device.store.membership.place > 0 { parts.append("at the second bank") }
      for voucher in state.vouchers { parts.append("a voucher for \(CheckedWords.of(voucher.amounts))") }
      for former in device.store.membership.former {
        let operations = CheckedWords.of(former.state.undecided.flatMap { Array($0) })
        parts.append("left \(CheckedWords.of(former.state.chain))\(operations.isEmpty ? "" : " with \(operations)")")
      }
      if device.isRemoved { parts.append("removed") }
      return parts.joined(separator: ", ")
    }
    return devices + [bank.words] + (secondBank.state == BankState() ? [] : ["second " + secondBank.words])
  }
}

extension CheckedBank {
  /// The bank in a line.
  fileprivate var words: String {
    let chains = state.chains.sorted { $0.key < $1.key }.map { id, chain in
      let rights = chain.totals.mapValues(\.rights)
      return "\(CheckedWords.of(id))#\(chain.head.count) statement \(chain.statement) "
        + (chain.isShown ? CheckedWords.of(rights) : "not shown")
    }
    let waiting = state.waiting.flatMap(\.operations)
    var parts = ["bank: \(CheckedWords.of(state.pool))"] + chains
    if !waiting.isEmpty { parts.append("waiting: \(CheckedWords.of(waiting))") }
    return parts.joined(separator: "; ")
  }
}

/// Numbers in place of random ones: each device counts, so that equal states are found to be equal.
struct DrawnNumbers: RandomNumberGenerator {
  let slot: Int
  private(set) var drawn: UInt32

  init(slot: Int, drawn: UInt32) { (self.slot, self.drawn) = (slot, drawn) }

  mutating func next() -> UInt64 {
    drawn += 1
    return UInt64(slot + 1) << 32 | UInt64(drawn)
  }
}
