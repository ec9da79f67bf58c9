import KeepsakeReplication

/// The character of one world: which things happen in it, how often, and what its network and its clocks do.
///
/// Drawn from the seed. If everything could happen at once, many things would hide the rest. So each world leaves out
/// about a third of all acts: some worlds have nothing but crashes, some have only a few, and some are only slow.
struct Swarm {
  /// What may happen next on a device.
  enum Act: CaseIterable {
    case load, save, delete, writeCell, wallet, network, reopen, copy, rollBack, backUp, turnClock, collect, sync,
      remove, ghost

    /// The usual frequency, of about a hundred.
    fileprivate var usual: Int {
      switch self {
      case .load: 14
      case .save: 26
      case .delete: 3
      case .writeCell: 15
      case .wallet: 18
      case .network: 6
      case .reopen: 4
      case .copy, .rollBack, .backUp, .turnClock: 2
      case .collect, .sync: 3
      case .remove: 1
      // Only in worlds about money.
      case .ghost: 0
      }
    }

    /// The frequency in a world that is about money.
    fileprivate var aboutMoney: Int {
      switch self {
      case .load, .save, .writeCell, .turnClock, .collect: 1
      case .delete, .sync: 2
      case .wallet: 60
      case .network: 10
      case .reopen, .copy, .remove, .ghost: 3
      case .rollBack: 6
      case .backUp: 14
      }
    }

    fileprivate var isAboutMoney: Bool { [.wallet, .network].contains(self) }

    /// Whether it is part of playing: without these acts nothing would be at stake.
    fileprivate var isPlay: Bool { [.load, .save, .writeCell].contains(self) }
  }

  let devices: Int
  /// The number of devices, including copies.
  let maximumDevices: Int
  let operations: Int
  /// The longest time between two operations.
  let pauseMilliseconds: Int64
  /// The longest time that a message takes.
  let latencyMilliseconds: Int64
  /// One in this many messages goes wrong; 0 for none. The other odds likewise.
  let lossOdds: Int
  let doublingOdds: Int
  let deafnessOdds: Int
  let crashOdds: Int
  let skewOdds: Int
  let cloudRestoreOdds: Int
  let cloudFillOdds: Int
  /// The number of changes in one response.
  let page: Int
  /// The most bytes of contents that are sent inside an exchange.
  let inlineBytes: Int
  /// In worlds whose cloud is restored: the number of items in one part of everything that a store contains, and in one
  /// request, so that an offer takes several.
  let pieceItems: Int
  let requestItems: Int
  /// The most operations of a wallet in one exchange.
  let walletBatch: Int
  /// Whether events contain what changed; that is wrong for a device that missed an event before.
  let tellsSteps: Bool
  /// Whether games keep documents that merge, and how much history devices keep.
  let hasDocuments: Bool
  let newestKept: Int
  /// Whether the world is mostly about money: small exchanges, and many copies, backups and removed devices.
  let isAboutMoney: Bool
  /// Whether most saves are documents that merge.
  let isAboutDocuments: Bool
  private let weights: [(act: Act, upTo: Int)]

  /// - Parameters:
  ///   - operations: The average number of operations.
  ///   - faults: The bugs that are planted.
  init(operations mean: Int, for faults: Faults, using random: inout SeededGenerator) {
    func one<Value>(of values: [Value], _ usual: Value) -> Value { values.randomElement(using: &random) ?? usual }
    devices = Int.random(in: 2...5, using: &random)
    maximumDevices = devices + Int.random(in: 0...3, using: &random)
    operations = Int.random(in: mean / 2...mean * 3 / 2, using: &random)
    pauseMilliseconds = one(of: [200, 3_000, 3_000, 30_000], 3_000)
    latencyMilliseconds = one(of: [20, 200, 200, 3_000], 200)
    lossOdds = one(of: [0, 25, 10, 5], 10)
    doublingOdds = one(of: [0, 20, 6], 20)
    deafnessOdds = one(of: [0, 3, 3, 1], 3)
    crashOdds = one(of: [0, 400, 150, 60], 150)
    skewOdds = one(of: [0, 4, 2], 4)
    cloudRestoreOdds = random.once(in: 8) ? 20 : 0
    cloudFillOdds = random.once(in: 6) ? 20 : 0
    page = one(of: [3, 5, 20, 500], 20)
    // Small enough that some contents have to be put one by one.
    inlineBytes = one(of: [40, 100, 100_000], 100)
    let drawn = random.once(in: 5)
    isAboutMoney = faults.isEmpty ? drawn : faults.subject == .money
    isAboutDocuments = faults.subject == .documents
    var sum = 0
    var weights: [(Act, Int)] = []
    for act in Act.allCases {
      let isLeftOut = random.once(in: 3) && !(isAboutMoney ? act.isAboutMoney : act.isPlay)
      let usual = isAboutMoney ? act.aboutMoney : act.usual
      sum += isLeftOut ? 0 : usual * one(of: [1, 1, 1, 2, 4], 1)
      weights.append((act, sum))
    }
    self.weights = weights
    tellsSteps = !random.once(in: 3)
    hasDocuments = !random.once(in: 4) || isAboutDocuments
    walletBatch = isAboutMoney ? one(of: [2, 2, 5], 2) : one(of: [2, 5, 40, Wallet.maximumBatch], 40)
    newestKept = one(of: [.max, .max, 1, 3, 10], .max)
    pieceItems = cloudRestoreOdds > 0 ? one(of: [1, 3, 50], 3) : DeviceCommit.maximumGroupVersions
    requestItems = cloudRestoreOdds > 0 ? one(of: [2, 6, 1_000], 6) : ExchangeRules.maximumVersions
  }

  func act(using random: inout SeededGenerator) -> Act {
    let number = Int.random(in: 0..<(weights.last?.upTo ?? 1), using: &random)
    return weights.first { number < $0.upTo }?.act ?? .save
  }

  /// A description for the first line of a trace.
  var words: String {
    var last = 0
    let acts = weights.map { act, upTo in
      defer { last = upTo }
      return "\(act) \(upTo - last)"
    }
    return """
      \(devices) to \(maximumDevices) devices, \(CountText.of(operations, "operation")), pauses to \
      \(pauseMilliseconds) ms, latency to \(latencyMilliseconds) ms, one in: lost \(lossOdds), duplicated \
      \(doublingOdds), undelivered events \(deafnessOdds), crash \(crashOdds), skew \(skewOdds), restore \
      \(cloudRestoreOdds), full \(cloudFillOdds); page \(page), inline \(inlineBytes), pieces of \(pieceItems) in \
      requests of \(requestItems), operations by \(walletBatch)\(isAboutMoney ? ", about money" : ""), \
      events \(tellsSteps ? "with" : "without") what changed; \
      \(hasDocuments ? "documents" : "no documents"), past \(newestKept == .max ? "all" : "\(newestKept)"); \
      \(acts.joined(separator: ", "))
      """
  }
}

extension SeededGenerator {
  /// True once in this many times; never for 0.
  mutating func may(_ odds: Int) -> Bool { odds > 0 && once(in: odds) }
}
