import Foundation
package import KeepsakeReplication

/// A whole world from one seed: devices with their games, one cloud, and everything between them that can go wrong.
///
/// Devices play, crash, are copied, restored and reopened, go offline, have wrong clocks; messages are lost, doubled, late
/// and out of order. Then all of that stops, everything is delivered, and what must always hold is checked.
package final class World {
  package struct Options: Hashable, Sendable {
    /// What games do, all devices together.
    package var operations = 130
    /// Keep the trace in words.
    package var keepsLines = false
    package var planted: Set<PlantedBug> = []

    package init() {}
  }

  struct Device {
    var storage = SimulatedDevice()
    var engine: DeviceEngine?
    var writer = WriterID(0)
    /// What its clock is off by.
    var skew: Int64 = 0
    var online = true
    /// Counts the openings: what was meant for an earlier one is nobody's.
    var opening = 0
    /// The newest wake-up that it asked for.
    var wake = 0
    /// What the game has loaded or saved last, by slot.
    var loaded: [String: [VersionID]] = [:]
    /// Writes made here, as indices into `Model.writes`.
    var journal: [Int] = []
    /// An older state of the storage, and how many writes it had.
    var backup: (storage: SimulatedDevice, writes: Int)?
    var checkedElements: Set<VersionID> = []
    var exchanges = 0
  }

  enum Call {
    case exchange(UInt64, ExchangeRequest)
    case upload(UInt64, EncodedContent)
    case download(UInt64, ContentHash)
  }

  enum Happening {
    case toCloud(device: Int, opening: Int, Call)
    case toDevice(device: Int, opening: Int, EngineEvent)
    case wake(device: Int, opening: Int, number: Int)
    case action
  }

  struct Scheduled {
    var time: Int64
    var order: Int
    var happening: Happening
  }

  static let slots = ["main", "second"]
  /// How long a device waits for an answer.
  static let timeoutMilliseconds: Int64 = 5_000
  /// 2025-01-01, so that times look like times.
  static let epochMilliseconds: Int64 = 1_735_689_600_000

  let options: Options
  let engineOptions: DeviceEngine.Options
  var random: SeededGenerator
  var report: WorldReport
  var model = Model()
  var now = World.epochMilliseconds
  var devices: [Device] = []
  var cloud = SimulatedContainer(epoch: 1)
  var cloudBackup: SimulatedContainer?
  var cloudWasRestored = false
  var queue: [Scheduled] = []
  var order = 0
  /// Everything that goes wrong by chance stops when the world comes to rest.
  var calm = false
  let lossOdds: Int
  let crashOdds: Int
  let restoresCloud: Bool
  let fillsQuota: Bool
  /// The cloud takes no saves for now.
  var isFull = false

  package init(seed: UInt64, options: Options = Options()) {
    self.options = options
    random = SeededGenerator(seed: seed)
    report = WorldReport(seed: seed)
    var engine = DeviceEngine.Options()
    engine.page = [3, 5, 20, 500].randomElement(using: &random) ?? 20
    // Small enough that some contents have to be put one by one.
    engine.inlineBytes = [40, 100, 100_000].randomElement(using: &random) ?? 100
    engine.maximumDepth = 3
    engineOptions = engine
    lossOdds = [0, 25, 10, 5].randomElement(using: &random) ?? 10
    crashOdds = [400, 150, 60].randomElement(using: &random) ?? 150
    restoresCloud = random.once(in: 8)
    fillsQuota = random.once(in: 6)
  }

  /// Lives the world through. Can be called once.
  package func run() -> WorldReport {
    report.statistics.worlds = 1
    // Some are played for a while before they ever hear of the cloud.
    for _ in 0..<Int.random(in: 3...4, using: &random) { addDevice(SimulatedDevice(), online: !random.once(in: 3)) }
    var time = now
    for _ in 0..<options.operations {
      time += Int64.random(in: 0...3_000, using: &random)
      schedule(at: time, .action)
    }
    while let next = popNext() {
      now = max(now, next.time)
      happen(next.happening)
      if case .action = next.happening, !queue.contains(where: { if case .action = $0.happening { true } else { false } }) { break }
      guard report.violations.isEmpty else { break }
    }
    if report.violations.isEmpty { comeToRest() }
    report.statistics.devices = devices.count
    return report
  }

  // MARK: Trace

  /// Adds to the trace; the words are made only when they are kept.
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

  func schedule(at time: Int64, _ happening: Happening) {
    order += 1
    queue.append(Scheduled(time: time, order: order, happening: happening))
  }

  func schedule(after delay: Int64, _ happening: Happening) { schedule(at: now + delay, happening) }

  func popNext() -> Scheduled? {
    var best: Int?
    for index in queue.indices {
      guard let known = best else {
        best = index
        continue
      }
      if (queue[index].time, queue[index].order) < (queue[known].time, queue[known].order) { best = index }
    }
    guard let best else { return nil }
    let next = queue[best]
    queue.swapAt(best, queue.count - 1)
    queue.removeLast()
    return next
  }

  func happen(_ happening: Happening) {
    switch happening {
    case .toCloud(let device, let opening, let call):
      receive(call, from: device, opening)
    case .toDevice(let device, let opening, let event):
      if devices[device].opening == opening { step(device, event) }
    case .wake(let device, let opening, let number):
      if devices[device].opening == opening, devices[device].wake == number { step(device, .woke) }
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
    if random.once(in: 4) {
      device.skew = Int64.random(in: -400_000_000_000...400_000_000_000, using: &random)
      report.statistics.skewedClocks += 1
    }
    device.writer = writer ?? WriterID(0)
    devices.append(device)
    open(devices.count - 1, keepingWriter: writer != nil)
  }

  func clock(of device: Int) -> Int64 { now + devices[device].skew }

  /// Opens the device's store as a new process would.
  func open(_ index: Int, keepingWriter: Bool = false) {
    devices[index].opening += 1
    let isFirst = devices[index].opening == 1
    if !keepingWriter, isFirst || !options.planted.contains(.reuseWriter) {
      devices[index].writer = WriterID(using: &random)
    }
    devices[index].loaded = [:]
    devices[index].engine = DeviceEngine(options: engineOptions, planted: options.planted)
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
    // A game without a cloud has no engine running; what it commits is the same.
    guard var engine = devices[index].engine, devices[index].storage.facts().container != nil else { return }
    let crash = drawCrash()
    let before = crash == .beforeCommit ? devices[index].storage : nil
    let effects: [EngineEffect]
    do {
      effects = try engine.step(event, now: clock(of: index), in: &devices[index].storage, using: &random)
    } catch {
      violation("device \(index): \(error)")
      return
    }
    if let before {
      report.statistics.crashesBeforeCommit += 1
      devices[index].storage = before
      trace(2, UInt64(index), words: "device \(index) crashes before the commit of a step")
      return open(index)
    }
    devices[index].engine = engine
    check(index, after: effects)
    if crash == .afterCommit {
      report.statistics.crashesAfterCommit += 1
      trace(3, UInt64(index), words: "device \(index) crashes after the commit of a step")
      return open(index)
    }
    perform(effects, of: index)
  }

  enum Crash { case beforeCommit, afterCommit }

  /// Whether the process ends at the transaction that is next; at least one does in every world.
  func drawCrash() -> Crash? {
    guard !calm else { return nil }
    let crashes = report.statistics.crashesBeforeCommit + report.statistics.crashesAfterCommit
    let isDue = crashes == 0 && report.statistics.operations > options.operations / 2
    guard isDue || random.once(in: crashOdds) else { return nil }
    return random.once(in: 2) ? .beforeCommit : .afterCommit
  }
}
