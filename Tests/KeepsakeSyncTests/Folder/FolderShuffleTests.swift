import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeSync

/// Three devices, each with its own copy of the folder, and between them a program that syncs files as badly as it can.
@Suite("A badly synced folder", .hangLimit) struct FolderShuffleTests {
  static let rounds = TestDepth.folderRounds
  static let firstSeed: UInt64 = 2038

  @Test("devices end up the same and never show half a checkpoint, whatever happens to files on their way")
  func shuffle() async throws {
    let counts = try await onThread {
      var counts: [FolderWorld.Happening: Int] = [:]
      let worlds = max(1, (Self.rounds + FolderWorld.rounds - 1) / FolderWorld.rounds)
      // Further worlds, until each of these has happened: the test would cover less than it claims.
      for number in 0..<100 {
        let isComplete = FolderWorld.Happening.allCases.allSatisfy { counts[$0, default: 0] > 0 }
        guard number < worlds || !isComplete else { break }
        let seed = Self.firstSeed + UInt64(number)
        var world = try FolderWorld(seed: seed)
        try world.run()
        #expect(world.report.problems == [], "seed \(seed)")
        counts.merge(world.report.counts, uniquingKeysWith: +)
      }
      return counts
    }
    for what in FolderWorld.Happening.allCases {
      #expect(counts[what, default: 0] > 0, "from seed \(Self.firstSeed): never \(what)")
    }
    print(
      """
      folder shuffle, \(Self.rounds) rounds: \(counts.map { "\($0.key) \($0.value)" }.sorted().joined(separator: ", "))
      """)
  }
}

/// The devices, their folders, and what was acknowledged.
struct FolderWorld {
  enum Happening: String, CaseIterable, Sendable {
    case commits, carried, halves, conflictedCopies, temporaries, deletions, comebacks, killed, lostAnswers, backups,
      restarts, heldParts,
      snapshots,
      removals, conflicts, quietPoints
  }
  struct Report: Sendable {
    var counts: [Happening: Int] = [:]
    var problems: [String] = []
  }
  /// The rounds of one world. What a device offers when it starts over still fits into one exchange.
  static let rounds = 40
  /// The number of rounds from one quiet point to the next.
  private static let quietEvery = 10

  private(set) var report = Report()
  private let folders: CloudFolders
  private var random: SeededGenerator
  private var devices: [FolderDevice] = []
  private var places: [URL] = []
  /// Copies of stores, each with its cursor.
  private var backups: [(device: Int, storage: SimulatedDevice)] = []
  private var counters: [Int64] = [0, 0, 0]
  /// What was acknowledged as being in the folder, and must never be lost.
  private var promised: [Int64] = [0, 0, 0]
  private var saved: Set<VersionID> = []
  /// Files that were removed on purpose, and may come back.
  private var removed: [(path: String, bytes: Data)] = []
  private let problems = ProblemList()

  init(seed: UInt64) throws {
    folders = try CloudFolders()
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
      let folder = try folders.make("copy \(index)")
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent("state"), withIntermediateDirectories: true)
      places.append(folder)
      let device = try FolderDevice(folder, seed: seed &* 10 &+ UInt64(index), options: options, engine: engine)
      device.check = { [problems] device in FolderWorld.checkWhole(device, index, problems) }
      devices.append(device)
    }
  }

  mutating func run() throws {
    for round in 1...Self.rounds {
      for _ in 0..<4 { try act() }
      for _ in 0..<6 { try carry() }
      if round % Self.quietEvery == 0 { try settle(round) }
      if !problems.all.isEmpty { break }
    }
    for device in devices {
      report.counts[.restarts, default: 0] += device.answers.count { $0.restart }
      report.counts[.heldParts, default: 0] += device.answers.count {
        if case .held = $0.outcome { true } else { false }
      }
    }
    report.problems = problems.all
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
      try device.cloud.tidy(now: device.now)
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

  // MARK: Carrying

  /// The segments and contents in a copy of the folder, by relative path, without any other files.
  private func files(_ index: Int) throws -> [String] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: places[index].path).filter { path in
      path.hasPrefix("state/") || path.split(separator: "/").count == 3
    }
    return names.sorted()
  }

  private func isWhole(_ path: String, _ bytes: Data) -> Bool {
    path.hasPrefix("state/") ? StateSegment(bytes) != nil : ContentFile.decoded(bytes) != nil
  }

  private func write(_ bytes: Data, _ index: Int, _ path: String) throws {
    let url = places[index].appendingPathComponent(path)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    // In place, as a bad program does it.
    try bytes.write(to: url)
  }

  private mutating func carry() throws {
    let from = pick(3)
    let to = (from + 1 + pick(2)) % 3
    let all = try files(from)
    guard !all.isEmpty else { return }
    let path = all[pick(all.count)]
    let bytes = try Data(contentsOf: places[from].appendingPathComponent(path))
    let there = places[to].appendingPathComponent(path)
    let isThere = FileManager.default.fileExists(atPath: there.path)
    switch pick(17) {
    case 0...6:
      if !isThere || isWhole(path, bytes) {
        try write(bytes, to, path)
        count(.carried)
      }
    case 7, 8:
      guard !isThere else { return }
      try write(bytes.prefix(pick(bytes.count + 1)), to, path)
      count(.halves)
    case 9:
      try write(bytes, to, "\(path) (conflicted copy \(pick(3)))")
      count(.conflictedCopies)
    case 10:
      let url = URL(fileURLWithPath: path)
      try write(
        bytes.prefix(pick(bytes.count + 1)), to,
        "\(path.dropLast(url.lastPathComponent.count)).~tmp~\(url.lastPathComponent.prefix(8))")
      count(.temporaries)
    case 11, 14:
      // Never the last intact copy.
      guard isWhole(path, bytes), let other = try? Data(contentsOf: there), other == bytes else { return }
      try FileManager.default.removeItem(at: places[from].appendingPathComponent(path))
      removed = removed.suffix(40) + [(path, bytes)]
      count(.deletions)
    case 12:
      guard !removed.isEmpty else { return }
      let old = removed[pick(removed.count)]
      try write(old.bytes, to, old.path)
      count(.comebacks)
    case 13:
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: Double(pick(1_000_000_000)))],
        ofItemAtPath: places[from].appendingPathComponent(path).path)
    default:
      for path in all.shuffled(using: &random).prefix(8) {
        let bytes = try Data(contentsOf: places[from].appendingPathComponent(path))
        guard isWhole(path, bytes) else { continue }
        try write(bytes, to, path)
        count(.carried)
      }
    }
  }

  // MARK: Quiet points

  /// Copies every intact file everywhere, until no device writes anything new.
  private mutating func settle(_ round: Int) throws {
    var isQuiet = false
    for _ in 0..<12 where !isQuiet {
      var whole: [String: Data] = [:]
      for index in 0..<3 {
        for path in try files(index) {
          let bytes = try Data(contentsOf: places[index].appendingPathComponent(path))
          if isWhole(path, bytes) { whole[path] = bytes }
        }
      }
      for index in 0..<3 {
        for (path, bytes) in whole.sorted(by: { $0.key < $1.key }) {
          let url = places[index].appendingPathComponent(path)
          if (try? Data(contentsOf: url)) != bytes { try write(bytes, index, path) }
        }
      }
      isQuiet = true
      for (index, device) in devices.enumerated() {
        let before = Set(try files(index))
        try device.listen()
        if try device.sync() != .idle { problems.note("round \(round): a device doesn't come to rest") }
        try device.cloud.tidy(now: device.now)
        let after = Set(try files(index))
        if after != before { isQuiet = false }
        if after.isStrictSubset(of: before) { count(.removals) }
        // What a device removed is removed everywhere.
        for path in before.subtracting(after) {
          for place in places where FileManager.default.fileExists(atPath: place.path + "/" + path) {
            try FileManager.default.removeItem(at: place.appendingPathComponent(path))
          }
        }
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
}

/// The problems that were found; shared with the checks that devices run.
final class ProblemList {
  private(set) var all: [String] = []

  func note(_ problem: String) {
    if all.count < 20, !all.contains(problem) { all.append(problem) }
  }
}
