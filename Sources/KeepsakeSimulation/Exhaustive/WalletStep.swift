import KeepsakeReplication

/// A step from one state to the next. Devices are 0 and 1.
///
/// Crashes need no steps of their own: a device that crashes before it commits a reply is like one whose reply is lost,
/// and is opened again; a device that crashes after a commit is only opened again.
package enum WalletStep: Hashable, Sendable {
  case perform(WalletDeed, device: Int)
  /// A game asks for the money of a large spend.
  case need(device: Int)
  /// A device is opened again, as after a crash; whatever it waits for is forgotten.
  case reopen(device: Int)
  /// An offer, the bank's reply, and its effect.
  case exchange(device: Int)
  /// The bank's reply is lost.
  case loseReply(device: Int)
  /// A request that is held up: anything may happen before it arrives.
  case send(device: Int)
  case arrive(message: Int, Arrival)
  case backUp(device: Int)
  case restore(device: Int)
  /// The store of the other device is replaced by a copy of this one.
  case copy(device: Int)
  case remove(device: Int)
  case join(device: Int)
  case pause
  case backUpBank
  /// The bank is set back to its backup. If it isn't marked as one, nobody tells the bank.
  case restoreBank(isMarked: Bool)
  case releaseBank
  /// The device joins the player of the other bank.
  case move(device: Int)
  /// The device adopts the wallets of the other one, whose store begins others.
  case adopt(device: Int)
  /// An offer to a bank that was left, its reply, and the effect: about the former wallet of this number.
  case leave(device: Int, former: UInt8)
  case loseLeaving(device: Int, former: UInt8)
  case sendLeaving(device: Int, former: UInt8)

  package enum Arrival: Hashable, Sendable {
    /// The device, which made no other request since, receives the reply.
    case answered
    case replyLost
    /// The reply is held up.
    case replyHeldUp

    fileprivate var words: String {
      switch self {
      case .answered: " and is answered"
      case .replyLost: ", and the reply goes nowhere"
      case .replyHeldUp: ", and the reply is held up"
      }
    }
  }

  /// The step as a sentence without a full stop.
  var words: String {
    switch self {
    case .perform(let deed, let device): "\(CheckedWords.device(device)) \(deed.words)"
    case .need(let device): "\(CheckedWords.device(device)) needs \(WalletDeed.large) for a purchase"
    case .reopen(let device): "\(CheckedWords.device(device)) is opened again"
    case .exchange(let device): "\(CheckedWords.device(device)) exchanges"
    case .loseReply(let device): "\(CheckedWords.device(device)) exchanges, and the reply is lost"
    case .send(let device): "\(CheckedWords.device(device)) sends a request that is held up"
    case .arrive(let message, let arrival):
      "message \(message + 1) arrives\(arrival.words)"
    case .backUp(let device): "\(CheckedWords.device(device)) is backed up"
    case .restore(let device): "\(CheckedWords.device(device)) is set back to its backup"
    case .copy(let device): "\(CheckedWords.device(1 - device)) becomes a copy of \(CheckedWords.device(device))"
    case .remove(let device): "\(CheckedWords.device(device)) is removed"
    case .join(let device): "\(CheckedWords.device(device)) joins again"
    case .pause: "8 days pass"
    case .backUpBank: "the bank is backed up"
    case .restoreBank(let isMarked): "the bank is set back to its backup\(isMarked ? "" : ", and isn't told")"
    case .releaseBank: "the bank is released"
    case .move(let device): "\(CheckedWords.device(device)) joins the player of the other bank"
    case .adopt(let device): "\(CheckedWords.device(device)) adopts the wallets of \(CheckedWords.device(1 - device))"
    case .leave(let device, let former): "\(CheckedWords.device(device)) asks a bank that it left (\(former + 1))"
    case .loseLeaving(let device, let former):
      "\(CheckedWords.device(device)) asks a bank that it left (\(former + 1)), and the reply is lost"
    case .sendLeaving(let device, let former):
      "\(CheckedWords.device(device)) sends a request to a bank that it left (\(former + 1)), which is held up"
    }
  }
}

/// How the parts of a state are shown.
enum CheckedWords {
  static func device(_ slot: Int) -> String { slot == 0 ? "A" : "B" }

  /// The device that created the chain, and the number of its draw.
  static func of(_ chain: ChainID) -> String { "\(device(slot(of: chain)))\(chain.high & 0xFFFF_FFFF)" }

  /// The device that created the chain.
  static func slot(of chain: ChainID) -> Int { Int(chain.high >> 32) - 1 }

  static func of(_ amounts: [String: Int64]) -> String {
    let known = amounts.filter { $0.value != 0 }
    return known.isEmpty ? "nothing" : known.sorted { $0.key < $1.key }.map { "\($1) \($0)" }.joined(separator: " and ")
  }

  static func of(_ operation: WalletOperation) -> String {
    switch operation.effect {
    case .credit: "earn \(operation.amount) \(operation.currency)"
    case .debit: "spend \(operation.amount) \(operation.currency)"
    case .giveBack: "return \(operation.amount) \(operation.currency)"
    case .claim: "claim \(operation.amount) \(operation.currency)"
    case .convert(let other, let received): "convert \(operation.amount) \(operation.currency) to \(received) \(other)"
    }
  }

  static func of(_ operations: some Collection<WalletOperation>) -> String {
    operations.map { of($0) }.joined(separator: ", ")
  }
}
