import BenchmarkKit
import Foundation
import Keepsake

/// What setting and reopening settings cost, beside peers, in one run.
struct PreferenceFigures: Codable {
  struct Sets: Codable {
    var way: String
    var count: Int
    /// Of the processor, by the calling thread until it goes on: the middle one of batches.
    var processorMicroseconds: Double
    /// The same by the clock on the wall, which counts waits, and on a busy machine others.
    var returnMicroseconds: Double
    /// All sets and what makes them durable at the end, for each set.
    var durableMicroseconds: Double
  }
  struct Opening: Codable {
    var what: String
    var microseconds: Double
  }

  static let keys = 10_000

  var machine: String
  var sets: [Sets] = []
  var openings: [Opening] = []

  static func measure(openings: Int, machine: String) throws -> PreferenceFigures {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-preferences-\(ProcessInfo.processInfo.processIdentifier)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer {
      // Only leaves a folder behind among the temporary files.
      try? FileManager.default.removeItem(at: folder)
    }
    var figures = PreferenceFigures(machine: machine)
    figures.sets = try Way.allCases.map { try sets($0, folder) }
    figures.openings = try reopening(openings, folder)
    return figures
  }

  // MARK: Setting

  private static func sets(_ way: Way, _ folder: URL) throws -> Sets {
    let (batch, batches) = way.size
    Progress.report("sets: \(way.title), \(batch * batches)")
    let setter = try way.setter(in: folder)
    let clock = ContinuousClock()
    // What reading the clocks takes, which counts where a batch is one set.
    let (free, reading) = middle((0..<100).map { _ in timed(clock) {} })
    var costs: [(processor: Double, wall: Double)] = []
    var all = 0.0
    var value = 0.0
    for round in 0...batches {
      // A new value each, or there would be nothing to do.
      let cost = try timed(clock) {
        for number in 0..<batch {
          value += 0.001
          try setter.set(value, number % Names.all.count)
        }
      }
      // The first one has nothing before it.
      if round > 0 {
        costs.append((max(cost.processor - free, 0), max(cost.wall - reading, 0)))
        all += cost.wall
      }
      if round == 0 || round == batches || way.isFirst {
        let flush = try timed(clock) { try setter.flush() }
        if round > 0 { all += flush.wall }
      }
    }
    let last = (batch - 1) % Names.all.count
    try BenchmarkError.require(try setter.value(last) == value, "\(way.title) lost what was set last")
    try setter.finish()
    let (processor, wall) = middle(costs)
    let (count, each) = (batch * batches, Double(batch))
    return Sets(
      way: way.rawValue, count: count, processorMicroseconds: processor / each, returnMicroseconds: wall / each,
      durableMicroseconds: all / Double(count))
  }

  /// Microseconds of this thread on a processor, and by the clock on the wall.
  private static func timed(
    _ clock: ContinuousClock, _ body: () throws -> Void
  ) rethrows -> (processor: Double, wall: Double) {
    let (used, start) = (threadMicroseconds(), clock.now)
    try body()
    let wall = (clock.now - start) / .microseconds(1)
    return (threadMicroseconds() - used, wall)
  }

  private static func middle(_ costs: [(processor: Double, wall: Double)]) -> (processor: Double, wall: Double) {
    (costs.map(\.processor).sorted()[costs.count / 2], costs.map(\.wall).sorted()[costs.count / 2])
  }

  /// Of this thread alone.
  private static func threadMicroseconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
  }

  // MARK: Reopening

  private static func value(_ number: Int) -> String { "value of the setting \(number)" }
  private static func key(_ number: Int) -> PreferenceKey<String> { PreferenceKey("key \(number)", default: "") }

  private static func reopening(_ count: Int, _ folder: URL) throws -> [Opening] {
    Progress.report("reopening: \(keys) keys")
    let (full, empty) = (folder.appending(path: "full"), folder.appending(path: "empty"))
    var game = try GameData.open("benchmark", at: full)
    var list: [String: String] = [:]
    for number in 0..<keys {
      try game.preferences.set(value(number), for: key(number))
      list[key(number).name] = value(number)
    }
    try game.close()
    try GameData.open("benchmark", at: empty).close()
    var files: [(name: String, url: URL)] = []
    for (name, format) in [("binary", PropertyListSerialization.PropertyListFormat.binary), ("XML", .xml)] {
      let url = folder.appending(path: "list-\(name)")
      try PropertyListSerialization.data(fromPropertyList: list, format: format, options: 0).write(to: url)
      files.append((name, url))
    }
    let names = (0..<keys).map { key($0).name }
    func open(_ url: URL, reads: Int) throws {
      game = try GameData.open("benchmark", at: url)
      for number in 0..<reads {
        try BenchmarkError.require(game.preferences[key(number)] == value(number), "\(names[number]) is lost")
      }
    }
    func read(_ url: URL, reads: Int) throws {
      let found = try PropertyListSerialization.propertyList(from: Data(contentsOf: url), format: nil) as? [String: Any]
      for number in 0..<reads {
        try BenchmarkError.require(found?[names[number]] as? String == value(number), "\(names[number]) is lost")
      }
    }
    let close = { try game.close() }
    var openings = [
      Opening(
        what: "Keepsake, a store without preferences",
        microseconds: try middle(count, { try open(empty, reads: 0) }, close)),
      Opening(
        what: "Keepsake, and one value read", microseconds: try middle(count, { try open(full, reads: 1) }, close)),
      Opening(
        what: "Keepsake, and all values read", microseconds: try middle(count, { try open(full, reads: keys) }, close)),
    ]
    for (name, url) in files {
      openings.append(
        Opening(
          what: "property list, \(name), and one value read",
          microseconds: try middle(count, { try read(url, reads: 1) }, {})))
      openings.append(
        Opening(
          what: "property list, \(name), and all values read",
          microseconds: try middle(count, { try read(url, reads: keys) }, {})))
    }
    return openings
  }

  private static func middle(_ count: Int, _ body: () throws -> Void, _ after: () throws -> Void) throws -> Double {
    let clock = ContinuousClock()
    var times: [Double] = []
    for _ in 0..<count {
      let start = clock.now
      try body()
      times.append((clock.now - start) / .microseconds(1))
      try after()
    }
    return times.sorted()[count / 2]
  }
}
