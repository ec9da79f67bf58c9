#if Cloud
import Foundation
import Synchronization

/// What one thread of a load measures.
struct LoadRecord: Sendable {
  /// What is done, as the report names it.
  enum Action: String, CaseIterable, Sendable, Codable {
    case register, save, empty, upload, pair, catchUp
  }
  struct Sample: Sendable {
    var action: Action
    /// When the response was complete, in seconds after the begin of the measurement.
    var second: Double
    var milliseconds: Double
  }
  /// Beyond this, every second sample is dropped once more: an hour of ten thousand a second.
  private static let maximumSamples = 4_000_000

  private(set) var samples: [Sample] = []
  private(set) var errors: [String: Int] = [:]
  /// How many events arrived.
  var events = 0
  /// Attacks by their kind and outcome.
  private(set) var attacks: [String: Int] = [:]
  /// Counts dropped samples, too.
  private(set) var counts: [Action: Int] = [:]
  private var step = 1

  mutating func add(_ action: Action, second: Double, milliseconds: Double) {
    let count = counts[action, default: 0] + 1
    counts[action] = count
    guard count % step == 0 else { return }
    samples.append(Sample(action: action, second: second, milliseconds: milliseconds))
    guard samples.count > Self.maximumSamples else { return }
    samples = samples.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
    step *= 2
  }

  mutating func fail(_ kind: String) { errors[kind, default: 0] += 1 }

  mutating func attack(_ kind: LoadAttack, _ outcome: String) {
    attacks["\(kind.rawValue): \(outcome)", default: 0] += 1
  }

  mutating func merge(_ other: LoadRecord) {
    samples += other.samples
    errors.merge(other.errors, uniquingKeysWith: +)
    attacks.merge(other.attacks, uniquingKeysWith: +)
    counts.merge(other.counts, uniquingKeysWith: +)
    events += other.events
  }
}

/// Times of one kind, sorted.
struct Latencies: Sendable {
  var count: Int
  var p50: Double
  var p90: Double
  var p99: Double
  var longest: Double

  /// Nil without any time.
  init?(_ milliseconds: [Double]) {
    guard !milliseconds.isEmpty else { return nil }
    let sorted = milliseconds.sorted()
    func at(_ share: Double) -> Double { sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))] }
    (count, p50, p90, p99, longest) = (sorted.count, at(0.5), at(0.9), at(0.99), sorted[sorted.count - 1])
  }
}

/// The beginning and the end of a measurement, which all threads share.
final class LoadClock: Sendable {
  private let began = Mutex<ContinuousClock.Instant?>(nil)
  private let ended = Atomic(false)

  /// Begins the measurement: what ends before isn't measured.
  func begin() { began.withLock { $0 = .now } }

  func end() { ended.store(true, ordering: .relaxed) }

  var isEnded: Bool { ended.load(ordering: .relaxed) }

  /// Seconds since the beginning; nil before it.
  func seconds(at instant: ContinuousClock.Instant = .now) -> Double? {
    began.withLock { $0 }.map { (instant - $0) / .seconds(1) }
  }

  /// Waits, but not beyond the end.
  func pause(_ duration: Duration) {
    let until = ContinuousClock.now + duration
    while !isEnded {
      let left = (until - .now) / .seconds(1)
      guard left > 0 else { return }
      Thread.sleep(forTimeInterval: min(left, 0.2))
    }
  }
}
#endif
