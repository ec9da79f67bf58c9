#if Cloud
package import CoreMetrics
import Synchronization

/// Keeps what was measured, and writes it in the text format of Prometheus.
///
/// Series are never dropped, so that their labels must have few values. Beyond 2,000 series, new ones are counted as
/// refused and not kept: a mistake in a label must not fill the memory.
package final class PrometheusRegistry: MetricsFactory {
  enum Kind: String, Sendable {
    case counter, gauge, histogram
  }
  private struct Family {
    var kind: Kind
    var series: [String: any PrometheusSeries] = [:]
  }
  private struct State {
    var families: [String: Family] = [:]
    var count = 0
    var refused = 0
  }
  /// More than a server has: some 40 routes with a few statuses, 40 kinds of refusals.
  static let maximumSeries = 2_000
  /// What the text format is called in HTTP.
  static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  private let descriptions: [String: String]
  private let state = Mutex(State())

  package convenience init() { self.init(descriptions: ServerMetrics.descriptions) }

  /// - Parameter descriptions: What each metric means, by its name.
  init(descriptions: [String: String]) { self.descriptions = descriptions }

  /// Writes all series, sorted.
  package func text() -> String {
    let (families, refused) = state.withLock { ($0.families, $0.refused) }
    var text = ""
    for (name, family) in families.sorted(by: { $0.key < $1.key }) {
      if let description = descriptions[name] { text += "# HELP \(name) \(description)\n" }
      text += "# TYPE \(name) \(family.kind.rawValue)\n"
      for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) { series.write(name, labels, to: &text) }
    }
    return text + "# TYPE keepsake_series_refused gauge\nkeepsake_series_refused \(refused)\n"
  }

  /// Returns the series with this name and these labels, and creates it if needed.
  private func series<Series: PrometheusSeries>(
    _ label: String, _ dimensions: [(String, String)], _ kind: Kind, _ make: () -> Series
  ) -> Series {
    let name = Self.name(label)
    let labels = Self.labels(dimensions)
    return state.withLock { state in
      if let known = state.families[name]?.series[labels] as? Series { return known }
      let new = make()
      guard state.count < Self.maximumSeries, state.families[name, default: Family(kind: kind)].kind == kind else {
        state.refused += 1
        return new
      }
      state.families[name, default: Family(kind: kind)].series[labels] = new
      state.count += 1
      return new
    }
  }

  private func remove(_ handler: AnyObject) {
    state.withLock { state in
      for (name, family) in state.families {
        for (labels, series) in family.series where series === handler {
          state.families[name]?.series[labels] = nil
          state.count -= 1
        }
      }
    }
  }

  // MARK: Names

  private static func name(_ label: String) -> String {
    let name = String(
      label.map { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "_" || $0 == ":" ? $0 : Character("_") })
    return name.first?.isNumber == false ? name : "_" + name
  }

  private static func labels(_ dimensions: [(String, String)]) -> String {
    dimensions.map { dimension in
      let value = dimension.1.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
      return "\(name(dimension.0))=\"\(value)\""
    }.joined(separator: ",")
  }

  // MARK: MetricsFactory

  package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    series(label, dimensions, .counter, CounterSeries.init)
  }

  package func makeFloatingPointCounter(
    label: String, dimensions: [(String, String)]
  ) -> any FloatingPointCounterHandler {
    series(label, dimensions, .counter, GaugeSeries.init)
  }

  package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    series(label, dimensions, .gauge, GaugeSeries.init)
  }

  package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    aggregate
      ? series(label, dimensions, .histogram) { HistogramSeries(bounds: HistogramSeries.counts) }
      : series(label, dimensions, .gauge, GaugeSeries.init)
  }

  package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    series(label, dimensions, .histogram) { HistogramSeries(bounds: HistogramSeries.seconds) }
  }

  package func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
  package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { remove(handler) }
  package func destroyMeter(_ handler: any MeterHandler) { remove(handler) }
  package func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
  package func destroyTimer(_ handler: any TimerHandler) { remove(handler) }
}
#endif
