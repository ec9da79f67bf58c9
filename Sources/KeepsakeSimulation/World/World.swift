import Foundation
package import KeepsakeReplication
import KeepsakeStore

/// A whole world from one seed: devices with their games, one cloud, and everything that can go wrong between them.
///
/// Devices play, crash, are copied, restored and reopened, go offline, have wrong clocks; messages are lost,
/// duplicated, late and out of order. Then all of that stops, everything is delivered, and what must always hold is
/// checked.
package final class World {
  package struct Options: Hashable, Sendable {
    /// The average number of operations of the games on all devices together; each world has between half of it and one
    /// and a half times as many.
    package var operations = 220
    /// Whether to keep the trace in words.
    package var keepsLines = false
    /// Bugs that are planted in every device and in the cloud.
    package var faults = Faults()

    package init() {}
  }

  struct Device {
    var storage = SimulatedDevice()
    var engine: DeviceEngine?
    var writer = WriterID(0)
    /// The error of its clock.
    var skew: Int64 = 0
    var online = true
    /// Counts how often it was opened: what was meant for an earlier opening is dropped.
    var opening = 0
    /// The number of the newest wake-up that it requested.
    var wake = 0
    /// What the game last loaded or saved, by slot.
    var loaded: [String: [VersionID]] = [:]
    /// Slots whose saves the game has requested.
    var asked: Set<String> = []
    /// The document that the game holds.
    var garden: Garden?
    /// Writes made here, as indices into `Model.writes`.
    var journal: [Int] = []
    /// An older state of the storage, how many writes it had, and when it was made.
    var backup: (storage: SimulatedDevice, writes: Int, time: Int64)?
    var checkedElements: Set<VersionID> = []
    var exchanges = 0
    /// The number of the newest request to a bank that was left, by the chain that it is about.
    var leaving: [ChainID: Int] = [:]
    /// How many such requests it has made.
    var leavingRequests = 0
    /// Counts how often it was rolled back.
    var era = 0
    /// Whether it, or the device that it is a copy of, was ever rolled back: no other device may be marked for that.
    var wasSetBack = false
    /// The furthest cursor that has arrived since it was rolled back, and whether a response has.
    var arrivedCursor: UInt64 = 0
    var wasAnswered = false
    /// Whether the cloud has seen it go back, so that it must be marked at rest.
    var awaitsMark = false

    /// The id by which the cloud knows it.
    static func id(_ index: Int) -> DeviceID { DeviceID(high: 0, low: UInt64(index)) }
  }

  enum Call {
    /// With the device's era and the time when it was sent.
    case exchange(UInt64, ExchangeRequest, era: Int, sent: Int64)
    case upload(UInt64, EncodedContent)
    case download(UInt64, ContentHash)

    /// Contents take longer, so that much happens while several are being transferred.
    var weight: Int64 { if case .exchange = self { 1 } else { 6 } }
  }

  enum Happening {
    case toCloud(device: Int, opening: Int, Call)
    case toDevice(device: Int, opening: Int, EngineEvent)
    case wake(device: Int, opening: Int, number: Int)
    /// The device's event stream is open again.
    case listen(device: Int, opening: Int)
    /// The device is restored from its backup.
    case setBack(device: Int, opening: Int)
    /// A request to the bank that a device, or a guest whom it adopted, has left; and the reply.
    case toFormerBank(device: Int, opening: Int, number: Int, WalletOffer)
    case fromFormerBank(device: Int, opening: Int, number: Int, WalletReply)
    case action
  }

  /// That of the devices (`SimulatedDevice.connect`).
  static let container = ContainerID(high: 0, low: 1)
  static let slots = ["main", "second"]
  /// How long a device waits for a response.
  static let timeoutMilliseconds: Int64 = 5_000
  /// 2025-01-01, so that times look like times.
  static let epochMilliseconds: Int64 = 1_735_689_600_000

  let options: Options
  let swarm: Swarm
  let engineOptions: DeviceEngine.Options
  var random: SeededGenerator
  var report: WorldReport
  var model = Model()
  var now = World.epochMilliseconds
  var devices: [Device] = []
  var cloud = MemoryContainer(epoch: 1)
  /// The last report that the cloud received of how far a device has come.
  struct Word {
    /// The device's era when it made the report.
    var era: Int
    /// When it was sent, and when the newest report that arrived was sent: a report that was delayed may arrive after a
    /// later one.
    var sent: Int64
    var newest: Int64
  }
  var words: [Int: Word] = [:]
  /// For each device the last request to arrive, by the time when it was sent, and whether it reported nothing because
  /// something was still on its way to the device.
  var lastAsked: [Int: (sent: Int64, isSilent: Bool)] = [:]
  var cloudBackup: (cloud: MemoryContainer, words: [Int: Word])?
  var cloudWasRestored = false
  /// How often the cloud was restored.
  var bankEpoch: UInt64 = 0
  var agenda = Agenda<Happening>()
  /// Set when the world comes to rest: everything that goes wrong by chance stops.
  var calm = false
  /// Whether the cloud currently accepts no saves, and when it last refused any.
  var isFull = false
  var lastFull: Int64?
  /// Whether games hold back what is received, and apply it between two levels. Drawn separately, so that other worlds
  /// stay as they are.
  let holdsArrivals: Bool
  /// Whether every other device leaves large saves in the cloud, and games ask for them. Drawn separately, too. Not if
  /// the cloud is restored: what only it had would be lost.
  let isFrugal: Bool
  var deliveries: SeededGenerator
  /// What the game's own servers order is drawn separately, too.
  var studio: SeededGenerator
  /// Whether somebody plays as a guest beside the devices, who then come into the guest's money. Drawn separately, too.
  let hasGuest: Bool
  var guest = Guest()
  var guests: SeededGenerator
  /// How the cloud prunes; nil if it doesn't. Drawn separately, too.
  let pruningRules: PruningRules?
  var pruner: SeededGenerator

  package init(seed: UInt64, options: Options = Options()) {
    self.options = options
    random = SeededGenerator(seed: seed)
    report = WorldReport(seed: seed)
    holdsArrivals = seed % 4 == 3
    deliveries = SeededGenerator(seed: ~seed)
    studio = SeededGenerator(seed: seed ^ 0x5354_5544_494F)
    guests = SeededGenerator(seed: seed ^ 0x0047_5545_5354)
    // A bug is looked for where it can be.
    swarm = Swarm(operations: options.operations, for: options.faults, using: &random)
    isFrugal = seed % 5 == 4 && swarm.cloudRestoreOdds == 0
    // A restored bank has lost which vouchers it had paid.
    hasGuest = swarm.isAboutMoney && swarm.cloudRestoreOdds == 0 && (seed % 4 == 1 || options.faults.isAboutVouchers)
    pruner = SeededGenerator(seed: seed ^ 0x5052_554E_4552)
    let prunes = seed % 3 == 1 || options.faults.isAboutPruning
    pruningRules = prunes ? Self.pruningRules(swarm, using: &pruner) : nil
    var engine = DeviceEngine.Options()
    engine.page = swarm.page
    engine.inlineBytes = swarm.inlineBytes
    engine.maximumDepth = 3
    engine.walletBatch = swarm.walletBatch
    if swarm.cloudRestoreOdds > 0 {
      (engine.pieceCells, engine.pieceVersions) = (swarm.pieceItems, swarm.pieceItems)
      (engine.maximumCells, engine.maximumVersions) = (swarm.requestItems, swarm.requestItems)
    }
    engineOptions = engine
    cloud.faults = options.faults
  }

  /// Runs the world. Can be called once.
  package func run() -> WorldReport {
    report.statistics.worlds = 1
    trace(0, words: swarm.words)
    // Some are played for a while before they first connect to the cloud.
    for _ in 0..<swarm.devices { addDevice(SimulatedDevice(), online: !random.once(in: 3)) }
    if hasGuest { beginGuest() }
    var time = now
    for _ in 0..<swarm.operations {
      time += Int64.random(in: 0...swarm.pauseMilliseconds, using: &random)
      agenda.add(.action, at: time)
    }
    while report.statistics.operations < swarm.operations, report.violations.isEmpty, let next = agenda.next() {
      now = max(now, next.time)
      happen(next.item)
    }
    if report.violations.isEmpty { comeToRest() }
    report.statistics.devices = devices.count
    return report
  }

  // MARK: Trace

  /// Adds to the trace; the words are only generated if they are kept.
  func trace(_ numbers: UInt64..., words: @autoclosure () -> String) {
    for number in numbers {
      report.trace = (report.trace ^ number) &* 0x100_0000_01B3
      report.trace ^= report.trace >> 29
    }
    if options.keepsLines { report.lines.append("\(now - Self.epochMilliseconds) \(words())") }
  }

  func violation(_ text: String) {
    report.violations.append(text)
    if options.keepsLines { report.lines.append("VIOLATION \(text)") }
  }

  // MARK: Time

  func schedule(after delay: Int64, _ happening: Happening) { agenda.add(happening, at: now + delay) }

  func happen(_ happening: Happening) {
    switch happening {
    case .toCloud(let device, let opening, let call):
      receive(call, from: device, opening)
    case .toDevice(let device, let opening, let event):
      guard devices[device].opening == opening else { return }
      if case .answered = event { devices[device].wasAnswered = true }
      step(device, event)
    case .wake(let device, let opening, let number):
      if devices[device].opening == opening, devices[device].wake == number { step(device, .woke) }
    case .listen(let device, let opening):
      if devices[device].opening == opening { listen(device) }
    case .setBack(let device, let opening):
      if devices[device].opening == opening, !calm { rollBack(device) }
    case .toFormerBank(let device, let opening, let number, let offer):
      leave(with: offer, from: device, opening, number)
    case .fromFormerBank(let device, let opening, let number, let reply):
      if devices[device].opening == opening { received(reply, by: device, number) }
    case .action:
      report.statistics.operations += 1
      act()
    }
  }

  // MARK: Devices

  func addDevice(_ storage: SimulatedDevice, online: Bool = true, writer: WriterID? = nil) {
    var device = Device()
    device.online = online
    device.storage = storage
    device.storage.faults = options.faults
    if swarm.newestKept != .max {
      device.storage.rules = HistoryRules(newest: swarm.newestKept, hourly: 2, daily: 1, weekly: 1)
    }
    if random.may(swarm.skewOdds) {
      device.skew = Int64.random(in: -400_000_000_000...400_000_000_000, using: &random)
      report.statistics.skewedClocks += 1
    }
    device.writer = writer ?? WriterID(0)
    devices.append(device)
    open(devices.count - 1, keepingWriter: writer != nil)
  }

  func clock(of device: Int) -> Int64 { now + devices[device].skew }

  /// Opens the device's store as a new process does.
  func open(_ index: Int, keepingWriter: Bool = false) {
    devices[index].opening += 1
    let isFirst = devices[index].opening == 1
    if !keepingWriter, isFirst || !options.faults.reusesWriters {
      devices[index].writer = WriterID(using: &random)
    }
    devices[index].loaded = [:]
    devices[index].garden = nil
    devices[index].asked = []
    devices[index].engine = DeviceEngine(options: engineOptions)
    do {
      try DeviceCommit.opened(in: &devices[index].storage, using: &random)
    } catch {
      violation("device \(index) can't be opened: \(error)")
    }
    trace(1, UInt64(index), devices[index].writer.value, words: "device \(index) opens as \(devices[index].writer)")
    if devices[index].online { devices[index].storage.connect() }
    step(index, .started)
  }

  func step(_ index: Int, _ event: EngineEvent) {
    // A game without a cloud has no engine running; it commits in the same way.
    guard var engine = devices[index].engine, devices[index].storage.facts().container != nil else { return }
    let crash = drawCrash()
    let before = crash == .beforeCommit ? devices[index].storage : nil
    let cursor = devices[index].storage.facts().cursor
    engine.holdsArrivals = holdsArrivals && !calm
    engine.downloadRules = downloads(of: index)
    let effects: [EngineEffect]
    do {
      effects = try engine.step(event, now: clock(of: index), in: &devices[index].storage, using: &random)
      try prune(index)
    } catch {
      violation("device \(index): \(error)")
      return
    }
    if crash != nil, engine.status.transfers.count > 2 { report.statistics.crashesInFlight += 1 }
    if let before {
      report.statistics.crashesBeforeCommit += 1
      devices[index].storage = before
      trace(2, UInt64(index), words: "device \(index) crashes before the commit of a step")
      return open(index)
    }
    devices[index].engine = engine
    if case .announced(let news) = event, devices[index].storage.facts().cursor != cursor {
      if news.unknown == nil { report.statistics.steps += 1 } else { report.statistics.restartsAnnounced += 1 }
    }
    check(index, after: effects)
    if crash == .afterCommit {
      report.statistics.crashesAfterCommit += 1
      trace(3, UInt64(index), words: "device \(index) crashes after the commit of a step")
      return open(index)
    }
    perform(effects, of: index)
  }

  /// Returns the rules for what a device downloads by itself: at rest, everything.
  private func downloads(of index: Int) -> DownloadRules {
    guard isFrugal, index % 2 == 1, !calm else { return DownloadRules() }
    return DownloadRules(largest: 20, asked: devices[index].asked)
  }

  enum Crash { case beforeCommit, afterCommit }

  /// Returns whether, and when, the process ends at the next transaction; at least one does in every world.
  func drawCrash() -> Crash? {
    guard !calm else { return nil }
    let crashes = report.statistics.crashesBeforeCommit + report.statistics.crashesAfterCommit
    let isDue = crashes == 0 && report.statistics.operations > swarm.operations / 2
    guard isDue || random.may(swarm.crashOdds) else { return nil }
    return random.once(in: 2) ? .beforeCommit : .afterCommit
  }
}
