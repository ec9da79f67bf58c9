import BenchmarkKit
import Dispatch
import Foundation
import Synchronization

/// What many small saves cost by how many slots there are, and what many tasks that save at once do, beside peers.
struct SlotFigures: Codable {
  /// Of each save.
  struct Many: Codable {
    var way: String
    var count: Int
    /// Until all are durable.
    var saveMicroseconds: Double
    /// Of the processor, all threads of the process.
    var saveProcessorMicroseconds: Double
    /// The same, where each slot has a save already.
    var saveAgainMicroseconds: Double
    /// Of the whole list, divided by the saves in it.
    var listMicroseconds: Double
    var loadMicroseconds: Double
  }
  /// Of all tasks together: the middle one of several runs.
  struct Together: Codable {
    var way: String
    var tasks: Int
    var wallMicroseconds: Double
    var processorMicroseconds: Double
    /// Waits on the disk; nil where there is no strace to count them.
    var syncs: Int?
  }

  var many: [Many] = []
  var together: [Together] = []

  private static let runs = 5

  static func measure(upTo most: Int, tasks: Int) throws -> SlotFigures {
    var figures = SlotFigures()
    for count in [1_000, 10_000] where count <= most {
      for way in SlotWay.allCases { figures.many.append(try many(way, count)) }
    }
    for way in SlotWay.allCases where way.hasTasks { figures.together.append(try together(way, tasks)) }
    return figures
  }

  /// How many times as much a save costs among the most slots as among the fewest; nil if only one number was measured.
  func growth(_ way: SlotWay) -> Double? {
    let rows = many.filter { $0.way == way.rawValue }
    guard let few = rows.first, let most = rows.last, few.count < most.count else { return nil }
    return most.saveProcessorMicroseconds / few.saveProcessorMicroseconds
  }

  // MARK: Many slots

  private static func many(_ way: SlotWay, _ count: Int) throws -> Many {
    Progress.report("slots: \(way.title), \(Format.grouped(count))")
    let slots = try way.open()
    let levels = [0, 1].map { score in (0..<count).map { Level($0, score: score) } }
    let first = try timed { try slots.saveEach(levels[0]) }
    let again = try timed { try slots.saveEach(levels[1]) }
    let list = try timed {
      try BenchmarkError.require(slots.list() == count, "\(way.title) doesn't list all saves")
    }
    let load = try timed {
      for number in 0..<count {
        try BenchmarkError.require(slots.load(number) == levels[1][number], "\(way.title) lost a save")
      }
    }
    try slots.finish()
    let share = 1 / Double(count)
    return Many(
      way: way.rawValue, count: count, saveMicroseconds: first.wall * share,
      saveProcessorMicroseconds: first.processor * share, saveAgainMicroseconds: again.wall * share,
      listMicroseconds: list.wall * share, loadMicroseconds: load.wall * share)
  }

  // MARK: Tasks

  private static func together(_ way: SlotWay, _ tasks: Int) throws -> Together {
    Progress.report("tasks: \(way.title), \(tasks) at once")
    var (wall, processor): ([Double], [Double]) = ([], [])
    for _ in 0..<runs {
      let slots = try way.open()
      let cost = try timed { try saveTogether(tasks, slots) }
      for number in 0..<tasks {
        try BenchmarkError.require(slots.load(number) == Level(number, score: 0), "\(way.title) lost a task's save")
      }
      wall.append(cost.wall)
      processor.append(cost.processor)
      try slots.finish()
    }
    // Opening and closing wait, too.
    let syncs = try DiskWaits.count("tasks:\(way.rawValue):\(tasks)")
    let others = try DiskWaits.count("tasks:\(way.rawValue):0")
    return Together(
      way: way.rawValue, tasks: tasks, wallMicroseconds: wall.sorted()[runs / 2],
      processorMicroseconds: processor.sorted()[runs / 2],
      syncs: syncs.flatMap { syncs in others.map { syncs - $0 } })
  }

  /// Saves as many levels, each in a slot and a task of its own, and returns when all are durable.
  static func saveTogether(_ tasks: Int, _ slots: any SlotKeeper) throws {
    let result = Mutex<Result<Void, any Error>?>(nil)
    let done = DispatchSemaphore(value: 0)
    Task {
      do {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<tasks {
            group.addTask { try await slots.saveInTask(Level(number, score: 0), number) }
          }
          try await group.waitForAll()
        }
        result.withLock { $0 = .success(()) }
      } catch {
        result.withLock { $0 = .failure(error) }
      }
      done.signal()
    }
    done.wait()
    guard let outcome = result.withLock({ $0 }) else {
      throw BenchmarkError(message: "The tasks ended without a result")
    }
    try outcome.get()
  }

  private static func timed(_ body: () throws -> Void) rethrows -> (wall: Double, processor: Double) {
    let clock = ContinuousClock()
    let (start, began) = (StoreFigures.processorNanoseconds(), clock.now)
    try body()
    let took = (clock.now - began) / .microseconds(1)
    return (took, Double(StoreFigures.processorNanoseconds() - start) / 1_000)
  }
}
