import BenchmarkKit
import Foundation

/// What each way takes for so many records, in one run.
struct RecordsFigures: Codable {
  enum Action: String, CaseIterable, Codable {
    case changeOne, changeAll, loadAll, find, range

    var title: String {
      switch self {
      case .changeOne: "one record changed, until it is durable"
      case .changeAll: "all records changed, until they are durable"
      case .loadAll: "load all"
      case .find: "find one by its key"
      case .range: "find a hundred between two dates"
      }
    }

    /// For a table that has all of them side by side, within 120 characters.
    var shortTitle: String {
      switch self {
      case .changeOne: "change one"
      case .changeAll: "change all"
      case .loadAll: "load all"
      case .find: "find one"
      case .range: "find a hundred"
      }
    }
  }

  struct Point: Codable {
    var action: Action
    var way: Keeper.Way
    var count: Int
    /// The middle one of several.
    var microseconds: Double
  }

  struct Size: Codable {
    var way: Keeper.Way
    var count: Int
    var bytes: Int
  }

  var machine: String
  var counts: [Int]
  var points: [Point] = []
  var sizes: [Size] = []

  /// Each is done again and again for about so long, but no more often than so many times.
  private static let seconds = 1.5
  private static let repetitions = 25
  /// What finds the right ones among so many finds them among more.
  private static let largestChecked = 10_000

  static func measure(counts: [Int], machine: String) throws -> RecordsFigures {
    var figures = RecordsFigures(machine: machine, counts: counts)
    for count in counts {
      Progress.report("\(Format.grouped(count)) records")
      let keeper = try Keeper(count: count)
      if count <= largestChecked { try keeper.check() }
      // The first action makes the files that the others read.
      for action in Action.allCases {
        for way in Keeper.Way.allCases {
          let time = try middle { try figures.time(action, way, keeper) }
          figures.points.append(Point(action: action, way: way, count: count, microseconds: time))
        }
      }
      for way in Keeper.Way.allCases {
        if let bytes = try keeper.bytes(way) { figures.sizes.append(Size(way: way, count: count, bytes: bytes)) }
      }
      try keeper.finish()
    }
    return figures
  }

  /// Microseconds of one; what has to happen before isn't counted.
  private func time(_ action: Action, _ way: Keeper.Way, _ keeper: Keeper) throws -> Double {
    switch action {
    case .changeOne: keeper.play()
    case .changeAll: keeper.playAll()
    case .loadAll, .find, .range: break
    }
    let clock = ContinuousClock()
    let start = clock.now
    switch action {
    case .changeOne: try keeper.saveOne(way)
    case .changeAll: try keeper.saveAll(way)
    case .loadAll: _ = try keeper.loadAll(way)
    case .find: _ = try keeper.find(way)
    case .range: _ = try keeper.range(way)
    }
    return (clock.now - start) / .microseconds(1)
  }

  private static func middle(_ body: () throws -> Double) throws -> Double {
    var times: [Double] = []
    repeat { times.append(try body()) } while times.reduce(0, +) < seconds * 1e6 && times.count < repetitions
    return times.sorted()[times.count / 2]
  }

  func microseconds(_ action: Action, _ way: Keeper.Way, _ count: Int) -> Double? {
    points.first { $0.action == action && $0.way == way && $0.count == count }?.microseconds
  }

  /// From how many records on `records` is quicker than `way`, and stays so; nil if it isn't within what was measured.
  /// Between two counts the times are taken to follow a straight line on logarithmic scales.
  func crossover(_ action: Action, _ way: Keeper.Way) -> Double? {
    var result: Double?
    var before: (count: Double, ratio: Double)?
    for count in counts {
      guard let ours = microseconds(action, .records, count), let theirs = microseconds(action, way, count) else {
        continue
      }
      let ratio = log(ours / theirs)
      if ratio > 0 {
        result = nil
      } else if result == nil {
        guard let before else {
          result = Double(count)
          continue
        }
        let share = before.ratio / (before.ratio - ratio)
        result = exp(log(before.count) + share * (log(Double(count)) - log(before.count)))
      }
      before = (Double(count), ratio)
    }
    return result
  }
}
