import KeepsakeReplication
import KeepsakeSimulation
import Testing

struct HistoryRulesTests {
  private static let minute: Int64 = 60_000
  private static let hour = 60 * minute
  private static let day = 24 * hour

  /// The times that remain of a slot that is saved at these times and pruned after each save, newest first.
  private func left(_ times: [Int64], _ rules: HistoryRules) -> [Int64] {
    var kept: [Int64] = []
    for time in times {
      kept.insert(time, at: 0)
      kept = zip(kept, rules.kept(kept)).compactMap { $1 ? $0 : nil }
    }
    return kept
  }

  @Test(
    "of saves made every minute for two days, the newest, the last of each hour and the last of the first day are kept")
  func everyMinute() {
    let start: Int64 = 40 * Self.day
    let minutes: Range<Int64> = 0..<2_880
    let times = minutes.map { (minute: Int64) -> Int64 in start + minute * Self.minute }
    let left = left(times, .standard)
    #expect(Array(left.prefix(20)) == times.suffix(20).reversed())
    // The last minute of each of the earlier hours, which are full hours.
    let hours = left.dropFirst(20).prefix(23)
    let lastMinute: Int64 = 59 * Self.minute
    #expect(hours.allSatisfy { (time: Int64) -> Bool in time % Self.hour == lastMinute })
    #expect(Set(hours.map { (time: Int64) -> Int64 in time / Self.hour }).count == 23)
    // The last minute of the first day, and nothing else.
    #expect(left.count == 44)
    #expect(left.last == 41 * Self.day - Self.minute)
  }

  @Test("of saves made once a week, those of the last 52 weeks are kept by the standard rules")
  func everyWeek() {
    let times = (0..<100).map { Int64($0) * 7 * Self.day }
    #expect(left(times, .standard) == times.suffix(52).reversed())
    #expect(left(times, HistoryRules(newest: 3, hourly: 0, daily: 0, weekly: 0)) == times.suffix(3).reversed())
    #expect(left(times, .everything) == times.reversed())
  }

  @Test(
    "pruning twice equals pruning once, and never more versions are kept than the rules allow",
    arguments: 0..<20 as Range<UInt64>)
  func settles(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let rules = HistoryRules(
      newest: .random(in: -1...6, using: &random), hourly: .random(in: -1...6, using: &random),
      daily: .random(in: 0...6, using: &random),
      weekly: .random(in: 0...6, using: &random))
    var time: Int64 = 0
    // Clocks jump, in both directions.
    let times = (0..<400).map { _ in
      time += Int64.random(in: -2 * Self.day...3 * Self.day, using: &random) / Int64.random(in: 1...500, using: &random)
      return time
    }
    let left = left(times, rules)
    #expect(rules.kept(left).allSatisfy { $0 }, "seed \(seed)")
    #expect(
      left.count <= [rules.newest, rules.hourly, rules.daily, rules.weekly].reduce(0) { $0 + max($1, 0) },
      "seed \(seed)")
    if rules.newest > 0 { #expect(left.first == times.last, "seed \(seed)") }
  }

  @Test("extreme and negative times are handled like any others")
  func extremes() {
    #expect(HistoryRules.standard.kept([.max, .min, 0, -1]) == [true, true, true, true])
    #expect(HistoryRules(newest: 0, hourly: 1, daily: 0, weekly: 0).kept([-1, -2, 0]) == [true, false, false])
    #expect(HistoryRules(newest: 0, hourly: 9, daily: 0, weekly: 0).kept([1, -1]) == [true, true])
  }
}
