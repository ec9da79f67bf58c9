import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport

@testable import KeepsakeSync

/// What brings the files of a shared folder from one device's copy to another's.
protocol FolderCarrier: AnyObject {
  /// The devices' copies.
  var places: [URL] { get }
  func place(_ index: Int) -> FolderPlace
  /// The container that a device belongs to.
  func container(_ index: Int) -> ContainerID
  /// Does one thing to one file, or nothing.
  func carry(using random: inout SeededGenerator) throws -> FolderWorld.Happening?
  /// How often everything has to be brought until devices have come to rest.
  var passes: Int { get }
  /// Brings everything that is intact everywhere.
  func bringAll() throws
  /// Whether nothing is on its way.
  var isIdle: Bool { get }
  /// The segments and contents in a copy, by relative path, without any other files.
  func files(_ index: Int) throws -> Set<String>
  /// A device removed these from its copy at a quiet point.
  func removed(_ paths: Set<String>) throws
  /// What happened besides, and what must not have.
  var besides: [FolderWorld.Happening: Int] { get }
  var problems: [String] { get }
}

/// Devices that share a folder, and what was acknowledged to them.
struct FolderWorld {
  enum Happening: String, Sendable {
    // What devices do, and what comes of it.
    case commits, killed, lostAnswers, backups, restarts, heldParts, snapshots, removals, conflicts, quietPoints
    /// Contents that nothing needs any more are removed.
    case collected
    // What a program does that syncs folders.
    case carried, halves, conflictedCopies, temporaries, deletions, comebacks
    // What iCloud does.
    case uploaded, announced, brought, evicted, emptied, bothWrote, awaited, withoutNetwork, unknown
  }
  /// What must happen whoever brings the files.
  static let ofDevices: Set<Happening> = [
    .commits, .killed, .lostAnswers, .backups, .snapshots, .removals, .conflicts, .quietPoints,
  ]
  struct Report: Sendable {
    var counts: [Happening: Int] = [:]
    var problems: [String] = []
  }
  /// The rounds of one world. What a device offers when it starts over still fits into one exchange.
  static let rounds = 40
  /// The number of rounds from one quiet point to the next.
  private static let quietEvery = 10

  private(set) var report = Report()
  private let carrier: any FolderCarrier
  private var random: SeededGenerator
  private var devices: [FolderDevice] = []
  /// Copies of stores, each with its cursor.
  private var backups: [(device: Int, storage: SimulatedDevice)] = []
  private var counters: [Int64] = [0, 0, 0]
  /// What was acknowledged as being in the folder, and must never be lost.
  private var promised: [Int64] = [0, 0, 0]
  private var saved: Set<VersionID> = []
  private let problems = ProblemList()
  private let seed: UInt64

  init(seed: UInt64, _ carrier: any FolderCarrier) throws {
    (self.carrier, self.seed) = (carrier, seed)
    random = SeededGenerator(seed: seed)
    var options = FolderOptions()
    options.segmentsBeforeSnapshot = 6
    options.snapshotMilliseconds = 1 << 50
    // In every other world what a device offers when it starts over takes several requests.
    var engine = DeviceEngine.Options()
    if seed % 2 == 0 {
      (engine.pieceCells, engine.pieceVersions, engine.maximumCells, engine.maximumVersions) = (1, 2, 3, 3)
    }
    for index in 0..<3 {
      let device = try FolderDevice(
        carrier.place(index), of: carrier.container(index), seed: seed &* 10 &+ UInt64(index), options: options,
        engine: engine)
      device.check = { [problems] device in FolderWorld.checkWhole(device, index, problems) }
      devices.append(device)
    }
  }

  mutating func run() throws {
    for round in 1...Self.rounds {
      for _ in 0..<4 { try act() }
      for _ in 0..<6 {
        if let happened = try carrier.carry(using: &random) { count(happened) }
      }
      if round % Self.quietEvery == 0 { try settle(round) }
      if !problems.all.isEmpty { break }
    }
    if problems.all.isEmpty { try meetNewcomer() }
    for device in devices {
      report.counts[.restarts, default: 0] += device.answers.count { $0.restart }
      report.counts[.heldParts, default: 0] += device.answers.count {
        if case .held = $0.outcome { true } else { false }
      }
    }
    report.counts.merge(carrier.besides, uniquingKeysWith: +)
    report.problems = problems.all + carrier.problems
  }

  private mutating func count(_ what: Happening) { report.counts[what, default: 0] += 1 }

  private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  // MARK: Playing

  private mutating func act() throws {
    let index = pick(3)
    let device = devices[index]
    switch pick(12) {
    case 0...4:
      // One checkpoint: two values and a save of the device's own slot, all with the same number.
      counters[index] += 1
      let number = counters[index]
      var saves = [device.draft("\(number)", slot: "own \(index)")]
      if pick(2) == 0 { saves.append(device.draft("\(index) \(number)", slot: "shared")) }
      let cells = ["left", "right"].map {
        CellDraft(CellKey(collection: "progress", key: "\($0) \(index)"), .max(.int(number)))
      }
      try device.commit(CommitDraft(saves: saves, cells: cells))
      count(.commits)
    case 5...7:
      let before = device.cloud.ownChain().first
      try device.sync()
      if device.storage.outboxCount() == 0 { promise(index) }
      if let now = device.cloud.ownChain().first, now != before, device.cloud.links[now]?.isSnapshot == true {
        count(.snapshots)
      }
    case 8:
      try device.listen()
      let before = try device.stateFiles.count
      try device.tidy()
      if try device.stateFiles.count < before { count(.removals) }
    case 9:
      try device.reopen()
      count(.killed)
    case 10:
      device.losesAnswer = true
      try device.sync()
      if !device.losesAnswer { count(.lostAnswers) }
      device.losesAnswer = false
    default:
      if let (owner, storage) = backups.randomElement(using: &random), pick(3) == 0,
        devices[owner].storage.outboxCount() == 0
      {
        devices[owner].storage = storage
        try devices[owner].reopen()
        count(.backups)
      } else if device.storage.outboxCount() == 0 {
        backups = backups.suffix(4) + [(index, device.storage)]
      }
    }
  }

  /// Records what the device shows, which must not be lost from here on, because nothing waits to be sent.
  private mutating func promise(_ index: Int) {
    let storage = devices[index].storage
    for other in 0..<3 { promised[other] = max(promised[other], devices[index].value("left \(other)") ?? 0) }
    for slot in storage.slots() { saved.formUnion(storage.heads(of: slot)) }
  }

  /// Checks that the values and the save of a checkpoint are shown together or not at all.
  private static func checkWhole(_ device: FolderDevice, _ index: Int, _ problems: ProblemList) {
    for other in 0..<3 {
      let (left, right) = (device.value("left \(other)"), device.value("right \(other)"))
      let texts = device.texts("own \(other)")
      if left != right || !(left == nil ? texts.isEmpty : texts.contains("\(left ?? 0)")) {
        problems.note("device \(index) shows half of a checkpoint of \(other): \(left ?? -1), \(right ?? -1), \(texts)")
      }
    }
    for slot in device.storage.slots() where device.texts(slot).contains(nil) {
      problems.note("device \(index) shows a save of \(slot) without its contents")
    }
  }

  // MARK: Quiet points

  /// Lets everything arrive everywhere, until no device writes anything new.
  private mutating func settle(_ round: Int) throws {
    var isQuiet = false
    // Whatever is in the folder is so old that it is removed unless something needs it.
    let isLate = pick(3) == 0
    let late = Int64(Date.now.timeIntervalSince1970 * 1_000) + 40 * 86_400_000
    for _ in 0..<carrier.passes where !isQuiet {
      try carrier.bringAll()
      isQuiet = true
      for (index, device) in devices.enumerated() {
        let before = try carrier.files(index)
        try device.listen()
        if try device.sync() != .idle, carrier.isIdle { problems.note("round \(round): a device doesn't come to rest") }
        try device.tidy(now: isLate ? late : nil)
        let after = try carrier.files(index)
        if after != before || !carrier.isIdle { isQuiet = false }
        if after.isStrictSubset(of: before) { count(.removals) }
        let removed = before.subtracting(after)
        if removed.contains(where: { $0.hasPrefix("contents/") }) { count(.collected) }
        try carrier.removed(removed)
      }
    }
    if !isQuiet { problems.note("round \(round): the devices go on writing for ever") }
    count(.quietPoints)
    let views = devices.map(\.view)
    for index in 1..<3 where views[index] != views[0] {
      let difference =
        views[index].filter { !views[0].contains($0) } + ["instead of"] + views[0].filter { !views[index].contains($0) }
      problems.note("round \(round): device \(index) differs from the first: \(difference)")
    }
    for device in devices where device.storage.outboxCount() > 0 {
      problems.note("round \(round): something still waits to be sent")
    }
    for (index, number) in promised.enumerated() where devices[0].value("left \(index)") ?? 0 < number {
      problems.note("round \(round): \(number) of device \(index) was acknowledged and is lost")
    }
    for (index, device) in devices.enumerated() {
      if !device.storage.retreats.isEmpty { problems.note("round \(round): a value of device \(index) went back") }
      promise(index)
    }
    for id in saved where !devices[0].storage.isCovered(id) && devices[0].storage.version(id) == nil {
      problems.note("round \(round): the save \(id) is lost")
    }
    if devices[0].storage.heads(of: "shared").count > 1 { count(.conflicts) }
  }

  /// A device that has only the folder gets all that the others have.
  private func meetNewcomer() throws {
    let newcomer = try FolderDevice(carrier.place(2), of: carrier.container(2), seed: seed &* 10 &+ 9)
    newcomer.check = { [problems] device in Self.checkWhole(device, 3, problems) }
    for _ in 0..<carrier.passes where newcomer.view != devices[0].view {
      try carrier.bringAll()
      try newcomer.listen()
      try newcomer.sync()
    }
    if newcomer.view != devices[0].view { problems.note("a new device has \(newcomer.view)") }
  }
}

/// The problems that were found; shared with the checks that devices run.
final class ProblemList {
  private(set) var all: [String] = []

  func note(_ problem: String) {
    if all.count < 20, !all.contains(problem) { all.append(problem) }
  }
}
