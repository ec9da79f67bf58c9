#if Cloud
import CoreMetrics
import Synchronization

/// One metric with one set of labels.
protocol PrometheusSeries: AnyObject, Sendable {
  /// Appends the lines of the series.
  ///
  /// - Parameter labels: As they stand between braces.
  func write(_ name: String, _ labels: String, to text: inout String)
}

extension PrometheusSeries {
  fileprivate func line(_ name: String, _ labels: String, _ value: String) -> String {
    labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
  }

  fileprivate func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    // Without ".0", as most exporters write it.
    return Int64(exactly: value).map(String.init) ?? String(value)
  }
}

/// Only grows.
final class CounterSeries: PrometheusSeries, CounterHandler {
  private let value = Atomic<Int64>(0)

  func increment(by amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }

  func reset() { value.store(0, ordering: .relaxed) }

  func write(_ name: String, _ labels: String, to text: inout String) {
    text += line(name, labels, String(value.load(ordering: .relaxed)))
  }
}

/// A number that goes up and down.
final class GaugeSeries: PrometheusSeries, MeterHandler, RecorderHandler, FloatingPointCounterHandler {
  private let value = Mutex<Double>(0)

  func set(_ value: Int64) { set(Double(value)) }
  func set(_ value: Double) { self.value.withLock { $0 = value } }
  func increment(by amount: Double) { value.withLock { $0 += amount } }
  func decrement(by amount: Double) { value.withLock { $0 -= amount } }
  func record(_ value: Int64) { set(Double(value)) }
  func record(_ value: Double) { set(value) }
  func reset() { set(0.0) }

  func write(_ name: String, _ labels: String, to text: inout String) {
    text += line(name, labels, number(value.withLock { $0 }))
  }
}

/// How often values up to each of some bounds were recorded.
final class HistogramSeries: PrometheusSeries, TimerHandler, RecorderHandler {
  /// From half a millisecond, which a small exchange takes, to the longest wait.
  static let seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
  static let counts: [Double] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1_024, 4_096]

  private struct State {
    /// The last one counts what is above all bounds.
    var counts: [UInt64]
    var sum = 0.0
  }
  private let bounds: [Double]
  private let state: Mutex<State>

  init(bounds: [Double]) {
    self.bounds = bounds
    state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
  }

  func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1_000_000_000) }
  func record(_ value: Int64) { record(Double(value)) }

  func record(_ value: Double) {
    let index = bounds.firstIndex { value <= $0 } ?? bounds.count
    state.withLock { state in
      state.counts[index] += 1
      state.sum += value
    }
  }

  func write(_ name: String, _ labels: String, to text: inout String) {
    let state = state.withLock { $0 }
    let before = labels.isEmpty ? "" : labels + ","
    var count: UInt64 = 0
    for (bound, recorded) in zip(bounds, state.counts) {
      count += recorded
      text += line(name + "_bucket", "\(before)le=\"\(number(bound))\"", String(count))
    }
    count += state.counts.last ?? 0
    text += line(name + "_bucket", "\(before)le=\"+Inf\"", String(count))
    text += line(name + "_sum", labels, number(state.sum))
    text += line(name + "_count", labels, String(count))
  }
}
#endif
