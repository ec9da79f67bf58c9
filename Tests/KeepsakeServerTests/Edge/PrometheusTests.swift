#if Cloud
import CoreMetrics
import Foundation
import Testing

@testable import KeepsakeServer

@Suite("Metrics as text")
struct PrometheusTests {
  @Test("counters, gauges and histograms are written with their help, sorted, and with escaped labels")
  func text() {
    let registry = PrometheusRegistry(descriptions: ["requests_total": "All requests."])
    Counter(label: "requests_total", dimensions: [("route", "b"), ("x", "1")], factory: registry).increment(by: 2)
    Counter(label: "requests_total", dimensions: [("route", "a\"\\\n")], factory: registry).increment()
    Counter(label: "requests_total", dimensions: [("route", "b"), ("x", "1")], factory: registry).increment()
    Meter(label: "active.now", factory: registry).set(2.5)
    Recorder(label: "9sizes", factory: registry).record(3)
    #expect(
      registry.text() == """
        # TYPE _9sizes histogram
        _9sizes_bucket{le="1"} 0
        _9sizes_bucket{le="2"} 0
        \([4, 8, 16, 32, 64, 128, 256, 1024, 4096].map { "_9sizes_bucket{le=\"\($0)\"} 1\n" }.joined())\
        _9sizes_bucket{le="+Inf"} 1
        _9sizes_sum 3
        _9sizes_count 1
        # TYPE active_now gauge
        active_now 2.5
        # HELP requests_total All requests.
        # TYPE requests_total counter
        requests_total{route="a\\"\\\\\\n"} 1
        requests_total{route="b",x="1"} 3
        # TYPE keepsake_series_refused gauge
        keepsake_series_refused 0

        """)
  }

  @Test("a duration counts in the bucket of its seconds, also beyond the last bound")
  func seconds() {
    let registry = PrometheusRegistry(descriptions: [:])
    let timer = CoreMetrics.Timer(label: "time", factory: registry)
    timer.recordMilliseconds(5)
    timer.recordSeconds(60)
    let text = registry.text()
    #expect(text.contains("time_bucket{le=\"0.0025\"} 0\ntime_bucket{le=\"0.005\"} 1\n"))
    #expect(text.contains("time_bucket{le=\"30\"} 1\ntime_bucket{le=\"+Inf\"} 2\n"))
    #expect(text.contains("time_sum 60.005\ntime_count 2\n"))
  }

  @Test("beyond the limit, and under a name of another kind, nothing is kept, and that is counted")
  func limit() {
    let registry = PrometheusRegistry(descriptions: [:])
    for number in 0..<(PrometheusRegistry.maximumSeries + 10) {
      Counter(label: "paths", dimensions: [("path", "\(number)")], factory: registry).increment()
    }
    let lines = registry.text().split(separator: "\n")
    #expect(lines.filter { $0.hasPrefix("paths{") }.count == PrometheusRegistry.maximumSeries)
    #expect(lines.last == "keepsake_series_refused 10")
    let other = PrometheusRegistry(descriptions: [:])
    Counter(label: "name", factory: other).increment()
    Meter(label: "name", factory: other).set(7)
    let refused = "# TYPE keepsake_series_refused gauge\nkeepsake_series_refused 1\n"
    #expect(other.text() == "# TYPE name counter\nname 1\n" + refused)
  }
}
#endif
