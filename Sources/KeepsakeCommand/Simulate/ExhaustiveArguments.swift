#if Cloud
import ArgumentParser
import KeepsakeSimulation

/// The options of `keepsake simulate --exhaustive`.
struct ExhaustiveArguments: ParsableArguments {
  static let operations = 0...8
  /// How often each of the things happens that are counted by options.
  private static let counts = 0...4

  @Flag(
    name: .customLong("exhaustive"),
    help: "Visit every state of two wallets and their banks, instead of running worlds from seeds.")
  var isChosen = false

  @Option(help: "Where to start, by default at each of: \(ExhaustiveStart.names).")
  var start: [ExhaustiveStart] = []

  @Option(help: "The most steps from a start.")
  var depth: Int?

  @Option(help: "End after about so many states.")
  var states = ExhaustiveOptions().maximumStates

  @Option(help: "What games do, of: \(WalletDeed.names). By default the first six.")
  var deed: [WalletDeed] = []

  @Option(help: "How many replies are lost or requests held up.")
  var losses = ExhaustiveOptions().losses

  @Option(help: "How many stores are copied or set back to a backup.")
  var copies = ExhaustiveOptions().copies

  @Option(help: "How many devices are removed.")
  var removals = ExhaustiveOptions().removals

  @Option(help: "For how many purchases a game asks for money.")
  var needs = ExhaustiveOptions().needs

  @Option(help: "How often 8 days pass.")
  var pauses = ExhaustiveOptions().pauses

  @Option(help: "How often the bank is restored from a backup.")
  var restores = ExhaustiveOptions().restores

  @Flag(help: "Restore the bank also from backups that aren't marked as such.")
  var rawBackups = false

  @Option(help: "How often a device joins the player of the other bank, or adopts the other one's wallets.")
  var moves = ExhaustiveOptions().moves

  @Flag(help: "Let wallets receive replies to earlier requests.")
  var lateReplies = false

  @Option(help: "How many operations of a chain an exchange carries.")
  var batch: Int?

  @Option(help: "Deliver everything from every so many states.")
  var restEvery = 1

  func validate() throws {
    guard isChosen else { return }
    guard depth ?? 1 > 0, states > 0, restEvery > 0 else {
      throw ValidationError("--depth, --states and --rest-every take numbers that are at least 1.")
    }
    guard [losses, copies, removals, needs, pauses, restores, moves].allSatisfy(Self.counts.contains) else {
      throw ValidationError(
        """
        --losses, --copies, --removals, --needs, --pauses, --restores and --moves take numbers from 0 to \
        \(Self.counts.upperBound).
        """)
    }
    guard moves == 0 || restores == 0 else { throw ValidationError("--moves and --restores exclude each other.") }
    guard (1...500).contains(batch ?? 1) else { throw ValidationError("--batch takes a number from 1 to 500.") }
  }

  func options() -> ExhaustiveOptions {
    var options = ExhaustiveOptions()
    options.maximumDepth = depth ?? options.maximumDepth
    options.maximumStates = states
    options.deeds = deed.isEmpty ? options.deeds : deed
    (options.losses, options.copies, options.removals) = (losses, copies, removals)
    (options.needs, options.pauses, options.hasLateReplies) = (needs, pauses, lateReplies)
    (options.restores, options.hasRawBackups, options.moves) = (restores, rawBackups, moves)
    options.batch = batch ?? options.batch
    options.restEvery = restEvery
    return options
  }
}

extension ExhaustiveStart: ExpressibleByArgument {
  static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}

extension WalletDeed: ExpressibleByArgument {
  static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
#endif
