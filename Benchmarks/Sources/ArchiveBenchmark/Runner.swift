import BenchmarkKit
import CPeers
import CZstandard
import Foundation
import GameWorlds

/// Times tasks side by side: each round runs all of them in turn, so that a busy machine slows all alike.
struct Runner {
  let rounds: Int
  var figures: Figures
  private var wallTime = Duration.zero
  private var processorTime = Duration.zero

  init(rounds: Int, figures: Figures) {
    self.rounds = rounds
    self.figures = figures
  }

  /// Which part of the time others had the processor, in percent. A capture's wait for the disk counts, too, but is
  /// short.
  var busyPercent: Int {
    guard wallTime > .zero else { return 0 }
    return max(0, Int((100 * (1 - processorTime / wallTime)).rounded()))
  }

  /// A fast task is executed several times in a round, for about this long, but not more often than that.
  private static let share = Duration.milliseconds(25)
  private static let mostInARound = 20

  /// - Parameter rounds: Fewer than usual for what takes long.
  mutating func measure(_ group: String, rounds: Int? = nil, _ tasks: [TimedTask]) throws {
    let rounds = min(rounds ?? self.rounds, self.rounds)
    Progress.report("\(group): \(tasks.count) tasks, \(rounds) rounds")
    let repeats = try tasks.map { task in
      _ = try task.run()
      let first = try task.run()
      return max(1, min(Self.mostInARound, Int(Self.share / max(first, .nanoseconds(1)))))
    }
    let clock = ContinuousClock()
    let (wall, processor) = (clock.now, processor_nanoseconds())
    var samples = [[Double]](repeating: [], count: tasks.count)
    for _ in 0..<rounds {
      for (index, task) in tasks.enumerated() {
        for _ in 0..<repeats[index] { samples[index].append(try task.run() / .microseconds(1)) }
      }
    }
    wallTime += clock.now - wall
    processorTime += .nanoseconds(processor_nanoseconds() - processor)
    for (task, times) in zip(tasks, samples) {
      let sorted = times.sorted()
      guard let best = sorted.first else { continue }
      figures.measurements.append(
        Measurement(
          group: group, encoder: task.encoder, action: task.action, bestMicroseconds: best,
          medianMicroseconds: sorted[sorted.count / 2], samples: sorted.count, bytes: task.bytes?.count,
          zstdBytes: try task.bytes.map(Zstandard.size(of:))))
    }
  }
}

enum Zstandard {
  /// How many bytes are left of these under zstd, level 1.
  static func size(of data: Data) throws -> Int {
    var target = [UInt8](repeating: 0, count: ZSTD_compressBound(data.count))
    let size = data.withUnsafeBytes { ZSTD_compress(&target, target.count, $0.baseAddress, $0.count, 1) }
    guard ZSTD_isError(size) == 0 else { throw BenchmarkError(message: "zstd can't compress \(data.count) bytes") }
    return size
  }
}
