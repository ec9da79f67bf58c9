import KeepsakeReplication

/// A state from which the checker starts. Some violations are many steps away from empty stores, and few from one of
/// these.
package enum ExhaustiveStart: String, Hashable, Sendable, CaseIterable {
  /// Two fresh installs and a bank that nobody has used.
  case empty
  /// 100 gems, of which both devices have their share.
  case shared
  /// 100 gems on a device, of which the other is a copy.
  case copied
  /// The same after a device continued the chain. The copy learned of that, and its first request about a chain of its
  /// own is under way; with a backup of the copy from before that.
  case forked
  /// A device with more operations that no bank knows than an exchange carries, and a backup of it from before that.
  case long
  /// 100 gems, and a backup of each device.
  case backedUp
  /// A device with 80 gems at the first bank, another one with 130 at the second bank, and a backup of that one. Both
  /// were paid the same claim of 30.
  case guest

  /// To a guest that is adopted this often, anything may happen in between.
  private static let movesOfGuest = 2

  /// Returns the options of a run that starts here.
  func options(_ options: ExhaustiveOptions) -> ExhaustiveOptions {
    var options = options
    if self == .long { options.batch = min(options.batch, 2) }
    if self == .guest { options.moves = max(options.moves, Self.movesOfGuest) }
    // A former wallet has none of the operations that a restored bank has lost: the statement has to do, and nobody
    // could compare it with what was counted.
    if options.moves > 0 { options.restores = 0 }
    return options
  }

  /// Returns the state, in which nothing is used up of what is limited.
  ///
  /// - Throws: ``CheckedViolation`` if a planted bug shows on the way.
  func state(_ options: ExhaustiveOptions) throws(CheckedViolation) -> CheckedState {
    var runner = StepRunner(options)
    var state = CheckedState(options, secondAt: self == .guest ? 1 : 0)
    func make(_ steps: [WalletStep]) throws(CheckedViolation) {
      for step in steps {
        if let next = try runner.state(after: step, from: state) { state = next }
      }
    }
    let (earn, exchangeA, exchangeB) = (
      WalletStep.perform(.earn, device: 0), WalletStep.exchange(device: 0), WalletStep.exchange(device: 1)
    )
    switch self {
    case .empty: break
    case .shared, .backedUp:
      try make([earn, earn])
      for _ in 0..<5 { try make([exchangeA, exchangeB]) }
      if self == .backedUp { try make([.backUp(device: 0), .backUp(device: 1)]) }
    case .copied, .forked:
      try make([earn, earn, exchangeA, exchangeA, .copy(device: 0)])
      guard self == .forked else { break }
      try make([earn, exchangeA, .backUp(device: 1), exchangeB, .perform(.earn, device: 1), .send(device: 1)])
    case .long:
      let spend = WalletStep.perform(.spendSmall, device: 0)
      try make([earn, .backUp(device: 0), earn, spend, .perform(.claim, device: 0), spend])
    case .guest:
      let claims = [0, 1].map { WalletStep.perform(.claim, device: $0) }
      try make([earn, .perform(.earn, device: 1), .perform(.earn, device: 1)] + claims)
      for _ in 0..<3 { try make([exchangeA, exchangeB]) }
      try make([.backUp(device: 1)])
    }
    (state.losses, state.copies, state.removals, state.needs, state.pauses) = (0, 0, 0, 0, 0)
    state.forgetCheckpoints()
    return state
  }

  package var words: String {
    switch self {
    case .empty: "two fresh installs"
    case .shared: "100 gems shared by two devices"
    case .copied: "100 gems and a copied device"
    case .forked: "150 gems, a copied device whose first request about a chain of its own is under way, and its backup"
    case .long: "five operations unreported, two in an exchange, and a backup after the first"
    case .backedUp: "100 gems shared by two devices, with backups"
    case .guest: "80 gems at a bank, and 130 at another one on a second device that has a backup"
    }
  }
}
