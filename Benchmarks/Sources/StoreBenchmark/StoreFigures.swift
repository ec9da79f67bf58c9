import BenchmarkKit
import Foundation
import GameWorlds

/// What saving and loading through a store cost, beside peers, in one run.
struct StoreFigures: Codable {
  struct Save: Codable {
    var way: String
    /// Of the processor, all threads of the process, per save.
    var processorMicroseconds: Double
    /// Until the save was durable: the middle one.
    var wallMicroseconds: Double
    /// Waits on the disk per save; nil where there is no strace to count them.
    var syncs: Double?
  }
  struct Capture: Codable {
    var count = 0
    var medianMicroseconds = 0.0
    var perMilleMicroseconds = 0.0
    var worstMicroseconds = 0.0
  }
  struct Opening: Codable {
    var size: String
    var sealing: String
    /// The middle ones.
    var wallMicroseconds: Double
    var processorMicroseconds: Double
  }
  struct Memory: Codable {
    var valueBytes: Int
    var saveExtraBytes: Int
    var loadExtraBytes: Int
  }

  var machine: String
  var saves: [Save] = []
  var capture = Capture()
  var openings: [Opening] = []
  var slots = SlotFigures()
  var scores: [ScoreFigures] = []
  /// Nil where the system doesn't tell.
  var memory: Memory?

  /// Everything but the slots and the boards.
  mutating func measure(saves count: Int, captures: Int, openings: Int) throws {
    saves = try Self.durableSaves(count)
    capture = try Self.captures(captures)
    self.openings = try Self.openings(openings)
    #if os(Linux)
    memory = try Self.largeSave()
    #endif
  }

  // MARK: Saves

  private static func durableSaves(_ count: Int) throws -> [Save] {
    Progress.report("durable saves: \(DungeonSaves.Way.allCases.count) ways, \(count) of each in turns")
    let ways = try DungeonSaves.Way.allCases.map { ($0, try DungeonSaves($0)) }
    var processor = [UInt64](repeating: 0, count: ways.count)
    var wall = [[Double]](repeating: [], count: ways.count)
    let clock = ContinuousClock()
    for round in 0...count {
      for (index, (_, saves)) in ways.enumerated() {
        saves.play()
        let (start, began) = (processorNanoseconds(), clock.now)
        try saves.save()
        let took = (clock.now - began) / .microseconds(1)
        // What follows an acknowledged save, such as moving the log into the database, belongs to it.
        usleep(2_000)
        // The first one has nothing before it.
        if round > 0 {
          processor[index] += processorNanoseconds() - start
          wall[index].append(took)
        }
      }
    }
    return try ways.enumerated().map { index, way in
      try way.1.finish()
      return Save(
        way: way.0.rawValue, processorMicroseconds: Double(processor[index]) / Double(count) / 1_000,
        wallMicroseconds: wall[index].sorted()[count / 2], syncs: try syncs(way.0))
    }
  }

  /// How often a save waits for the disk: counted from outside, for many saves less what one costs.
  private static func syncs(_ way: DungeonSaves.Way) throws -> Double? {
    let (few, many) = (10, 210)
    guard let less = try DiskWaits.count("saves:\(way.rawValue):\(few)"),
      let more = try DiskWaits.count("saves:\(way.rawValue):\(many)")
    else { return nil }
    return Double(more - less) / Double(many - few)
  }

  // MARK: Captures

  /// Captures at 120 a second while the commits of those before go on.
  private static func captures(_ count: Int) throws -> Capture {
    Progress.report("captures: \(count) at 120 a second")
    let saves = try DungeonSaves(.keepsake)
    var times: [Double] = []
    let clock = ContinuousClock()
    let start = clock.now
    for frame in 0..<count {
      saves.play()
      let began = clock.now
      try saves.capture()
      times.append((clock.now - began) / .microseconds(1))
      let next = start + .nanoseconds(1_000_000_000 / 120 * (frame + 1))
      let rest = (next - clock.now) / .microseconds(1)
      if rest > 0 { usleep(UInt32(rest)) }
    }
    try saves.finish()
    times.sort()
    return Capture(
      count: count, medianMicroseconds: times[count / 2],
      perMilleMicroseconds: times[min(count - 1, count * 999 / 1_000)],
      worstMicroseconds: times[count - 1])
  }

  // MARK: Openings

  /// Each store is made, then opened and closed again and again; what closing costs is left out.
  private static func openings(_ count: Int) throws -> [Opening] {
    let clock = ContinuousClock()
    return try OpenedStore.Size.all.flatMap { size in
      try OpenedStore.Sealing.allCases.map { sealing in
        Progress.report("openings: \(size.title), \(sealing.title)")
        let store = try OpenedStore(size, sealing)
        var (wall, processor): ([Double], [Double]) = ([], [])
        for _ in 0..<count {
          let (start, began) = (processorNanoseconds(), clock.now)
          try store.open()
          wall.append((clock.now - began) / .microseconds(1))
          processor.append(Double(processorNanoseconds() - start) / 1_000)
          try store.close()
        }
        try store.finish()
        return Opening(
          size: size.title, sealing: sealing.rawValue, wallMicroseconds: wall.sorted()[count / 2],
          processorMicroseconds: processor.sorted()[count / 2])
      }
    }
  }

  // MARK: Memory

  private static func largeSave() throws -> Memory {
    Progress.report("256 MiB: saved in one process, loaded in another")
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-large-\(ProcessInfo.processInfo.processIdentifier)")
    defer {
      // Only leaves a folder behind among the temporary files.
      try? FileManager.default.removeItem(at: folder)
    }
    func probe(_ name: String) throws -> Int {
      let output = try Subprocess.run(["--probe", "\(name):\(folder.path)"])
      guard let bytes = Int(String(decoding: output, as: UTF8.self)) else {
        throw BenchmarkError(message: "\(name) told no figure")
      }
      return bytes
    }
    return Memory(
      valueBytes: LargeSave.valueBytes, saveExtraBytes: try probe("large-save"), loadExtraBytes: try probe("large-load")
    )
  }

  /// Of all threads of this process.
  static func processorNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
