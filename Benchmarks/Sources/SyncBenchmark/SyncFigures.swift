import BenchmarkKit
import Foundation
import Keepsake
import Synchronization

/// What syncing takes over real HTTP on this machine: time until another device has a save, bytes for a change, a month
/// away.
struct SyncFigures: Codable {
  /// Microseconds.
  struct Times: Codable {
    var median: Double
    var highest: Double

    init(_ all: [Double]) {
      let sorted = all.sorted()
      (median, highest) = (sorted[sorted.count / 2], sorted[min(sorted.count * 99 / 100, sorted.count - 1)])
    }
  }
  struct Patch: Codable {
    var change: Change
    var bytesUp: Int
    var bytesDown: Int
    var patchBytes: Int
  }
  struct Absence: Codable {
    var what: String
    var wire: WireMeter.Count
    var seconds: Double
  }

  var machine: String
  var saves: Int
  var requestBytes = 0
  var readable: Times?
  /// With two servers over one database, and a device at each.
  var readableElsewhere: Times?
  var bare: Times?
  var patches: [Patch] = []
  var autosaves: Int
  var keys: Int
  var absences: [Absence] = []

  static func measure(
    keepsake: String, database: String?, saves: Int, autosaves: Int, keys: Int, machine: String
  ) throws -> SyncFigures {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-sync-\(ProcessInfo.processInfo.processIdentifier)")
    defer {
      // Only leaves a folder behind among the temporary files.
      try? FileManager.default.removeItem(at: folder)
    }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let data = folder.appending(path: "cloud")
    let cloud = try CloudProcess(keepsake: keepsake, data: data, database: database)
    defer { cloud.stop() }
    let other = try database.map {
      try CloudProcess(keepsake: keepsake, data: Self.copyOfSecrets(in: data), database: $0)
    }
    defer { other?.stop() }
    let result = Mutex<Result<SyncFigures, any Error>?>(nil)
    let done = DispatchSemaphore(value: 0)
    let start = SyncFigures(machine: machine, saves: saves, autosaves: autosaves, keys: keys)
    Task {
      var figures = start
      do {
        try await figures.measureConvergence(cloud, other, in: folder.appending(path: "convergence"))
        if other == nil {
          try await figures.measurePatches(cloud, in: folder.appending(path: "patches"))
          try await figures.measureAbsences(cloud, in: folder.appending(path: "absences"))
        }
        result.withLock { $0 = .success(figures) }
      } catch {
        result.withLock { $0 = .failure(error) }
      }
      done.signal()
    }
    done.wait()
    guard let outcome = result.withLock({ $0 }) else { throw BenchmarkError(message: "Nothing was measured") }
    return try outcome.get()
  }

  /// A folder for another server of the same cloud, beside that of the first one.
  private static func copyOfSecrets(in data: URL) throws -> URL {
    let copy = data.appendingPathExtension("other")
    try FileManager.default.createDirectory(
      at: copy, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    for name in ["secret", "app-key"] {
      try FileManager.default.copyItem(at: data.appending(path: name), to: copy.appending(path: name))
    }
    return copy
  }

  /// From `save` returning on one device to `load` giving the value on the other; between every two, a bare exchange of
  /// as many bytes. If there is another server, the same between every two with the other device there.
  private mutating func measureConvergence(_ cloud: CloudProcess, _ other: CloudProcess?, in folder: URL) async throws {
    Progress.report("sync: bytes of a save")
    var pot = Pot.sample
    let metered = try await Player(cloud, in: folder.appending(path: "metered"), isMetered: true)
    _ = try await metered.first.saves.save(pot, to: Slot("pot"))
    try await metered.settle()
    if let meter = metered.meters?.first {
      let before = meter.count
      for _ in 0..<20 {
        pot.water()
        _ = try await metered.first.saves.save(pot, to: Slot("pot"))
        try await metered.settle()
      }
      let sent = meter.count - before
      requestBytes = sent.bytesUp / max(sent.exchanges, 1)
    }
    try metered.close()

    let bare = try await BareClient(cloud)
    let pair = try await WatchedPair(Player(cloud, in: folder.appending(path: "plain"), isMetered: false))
    var apart: WatchedPair?
    if let other {
      apart = try await WatchedPair(Player(cloud, other, in: folder.appending(path: "apart"), isMetered: false))
    }
    var (readable, elsewhere, alone): ([Double], [Double], [Double]) = ([], [], [])
    // The first ones warm up and don't count.
    for number in -20..<saves {
      let here = try await pair.save()
      let there = try await apart?.save()
      let start = ContinuousClock.now
      try await bare.post(number + 20, bytes: requestBytes)
      let end = ContinuousClock.now
      if number >= 0 {
        readable.append(here)
        if let there { elsewhere.append(there) }
        alone.append((end - start) / .microseconds(1))
      }
      if number % 100 == 0 { Progress.report("sync: save \(max(number, 0)) of \(saves)") }
    }
    (self.readable, self.bare) = (Times(readable), Times(alone))
    if !elsewhere.isEmpty { readableElsewhere = Times(elsewhere) }
    try pair.close()
    try apart?.close()
  }

  /// What a change of one percent of ten megabytes takes on the wire, beside zstd's own patch of the same bytes.
  private mutating func measurePatches(_ cloud: CloudProcess, in folder: URL) async throws {
    for change in Change.allCases {
      Progress.report("sync: \(change.title)")
      let player = try await Player(cloud, in: folder.appending(path: change.rawValue), isMetered: true)
      var island = Island.sample
      _ = try await player.first.saves.save(island, to: Slot("island"))
      try await player.settle()
      guard try player.second.saves.load(Slot<Island>("island")) == island, let meters = player.meters else {
        throw BenchmarkError(message: "The island did not arrive")
      }
      let before = (meters.first.count, meters.second.count)
      let old = try Archive.encode(island)
      change.apply(to: &island)
      _ = try await player.first.saves.save(island, to: Slot("island"))
      try await player.settle()
      try BenchmarkError.require(
        try player.second.saves.load(Slot<Island>("island")) == island, "The changed island did not arrive")
      patches.append(
        Patch(
          change: change, bytesUp: (meters.first.count - before.0).bytesUp,
          bytesDown: (meters.second.count - before.1).bytesDown,
          patchBytes: try Zstandard.patch(from: old, to: try Archive.encode(island), in: folder)))
      try player.close()
    }
  }

  /// Thirty days of play on one device while one of the two was offline.
  private mutating func measureAbsences(_ cloud: CloudProcess, in folder: URL) async throws {
    for isOffline in [true, false] {
      Progress.report("sync: a month, \(isOffline ? "played offline" : "while the other was offline")")
      let player = try await Player(cloud, in: folder.appending(path: "\(isOffline)"), isMetered: true)
      guard let meters = player.meters else { return }
      let (first, second) = (player.first, player.second)
      var pot = Pot.sample
      _ = try await first.saves.save(pot, to: Slot("pot"))
      try await player.settle()
      second.cloud.isEnabled = false
      if isOffline { first.cloud.isEnabled = false }
      for number in 0..<autosaves {
        pot.water()
        _ = try await first.saves.save(pot, to: Slot("pot"))
        if number * keys / autosaves != (number + 1) * keys / autosaves {
          let key = number * keys / autosaves
          let flower = ProgressKey("flower \(key)", default: 0, rule: .max)
          _ = try await first.progress.record(number + 1, for: flower).value
        }
        if !isOffline { try await first.cloud.sync() }
        if number % 1_000 == 999 { Progress.report("sync: autosave \(number + 1)") }
      }
      if isOffline {
        first.cloud.isEnabled = true
        absences.append(try await Self.catchUp(first, meters.first, "the device that played: sends"))
      }
      second.cloud.isEnabled = true
      let from = isOffline ? "what was played offline" : "what was played online"
      absences.append(try await Self.catchUp(second, meters.second, "the other device: fetches \(from)"))
      let last = ProgressKey("flower \(keys - 1)", default: 0, rule: .max)
      try BenchmarkError.require(
        try second.saves.load(Slot<Pot>("pot")) == pot && second.progress[last] == first.progress[last]
          && first.progress[last] > 0,
        "Not all arrived")
      try player.close()
    }
  }

  private static func catchUp(_ game: GameData, _ meter: WireMeter, _ what: String) async throws -> Absence {
    let (before, start) = (meter.count, ContinuousClock.now)
    try await game.cloud.sync()
    return Absence(what: what, wire: meter.count - before, seconds: (ContinuousClock.now - start) / .seconds(1))
  }
}
