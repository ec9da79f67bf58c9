import CZstandard
import Foundation

/// One thing to time. `run` gives what one execution took and has released its output when it returns, off the clock.
struct Task {
  let encoder: String
  let action: String
  let bytes: Data?
  let run: () throws -> Duration

  /// - Parameters:
  ///   - bytes: What is written or read, for its size.
  ///   - calls: How often one execution calls; what is told is the time of one call.
  init<Output>(
    _ encoder: String, _ action: String, bytes: Data? = nil, calls: Int = 1, _ body: @escaping () throws -> Output
  ) {
    self.encoder = encoder
    self.action = action
    self.bytes = bytes
    run = {
      var outputs = ContiguousArray<Output>()
      outputs.reserveCapacity(calls)
      let clock = ContinuousClock()
      let start = clock.now
      for _ in 0..<calls { outputs.append(try body()) }
      let took = clock.now - start
      withExtendedLifetime(outputs) {}
      return took / calls
    }
  }

  /// With a clock of its own.
  init(_ encoder: String, _ action: String, bytes: Data?, timed run: @escaping () throws -> Duration) {
    self.encoder = encoder
    self.action = action
    self.bytes = bytes
    self.run = run
  }
}

/// Times tasks side by side: each round runs all of them in turn, so that a busy machine slows all alike.
struct Runner {
  let rounds: Int
  var figures: Figures

  /// A fast task is executed several times in a round, for about this long, but not more often than that.
  private static let share = Duration.milliseconds(25)
  private static let mostInARound = 20

  /// - Parameter rounds: Fewer than usual for what takes long.
  mutating func measure(_ group: String, rounds: Int? = nil, _ tasks: [Task]) throws {
    let rounds = min(rounds ?? self.rounds, self.rounds)
    Progress.tell("\(group): \(tasks.count) tasks, \(rounds) rounds")
    let repeats = try tasks.map { task in
      _ = try task.run()
      let first = try task.run()
      return max(1, min(Self.mostInARound, Int(Self.share / max(first, .nanoseconds(1)))))
    }
    var samples = [[Double]](repeating: [], count: tasks.count)
    for _ in 0..<rounds {
      for (index, task) in tasks.enumerated() {
        for _ in 0..<repeats[index] { samples[index].append(try task.run() / .microseconds(1)) }
      }
    }
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

enum Progress {
  /// Tells on standard error what is going on, so that standard output has only results.
  static func tell(_ line: String) { FileHandle.standardError.write(Data("  \(line)\n".utf8)) }
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

/// A peer lost data, or a measurement can't be made.
struct BenchmarkError: Error {
  let message: String

  /// Throws unless what came back equals what went in: a peer that drops data doesn't count.
  static func require(_ holds: Bool, _ message: String) throws {
    guard holds else { throw BenchmarkError(message: message) }
  }
}
