/// Which versions of a slot's past are kept whole, so that they can be loaded and restored.
///
/// The newest ones, then the last of each hour, each day and each week in which the slot was saved. Heads, pinned versions, what the last
/// ten deletes took away, and what a conflict's sides have in common are kept whatever the rules say.
public struct HistoryRules: Sendable, Hashable {
  /// So many of the newest.
  public var newest: Int
  /// The last one of each of so many hours.
  public var hourly: Int
  /// The last one of each of so many days.
  public var daily: Int
  /// The last one of each of so many weeks.
  public var weekly: Int

  /// Counts below 0 mean 0. Hours, days and weeks in which nothing was saved don't count.
  public init(newest: Int = 20, hourly: Int = 24, daily: Int = 30, weekly: Int = 52) {
    self.newest = newest
    self.hourly = hourly
    self.daily = daily
    self.weekly = weekly
  }

  /// 20 newest, 24 hours, 30 days, 52 weeks: at most 126 versions.
  public static let standard = HistoryRules()
  /// Nothing is ever thinned.
  public static let everything = HistoryRules(newest: .max, hourly: 0, daily: 0, weekly: 0)

  /// Which of these are kept. Times are milliseconds since 1970 by the clock of whoever saved, in the order of the saves, newest first.
  ///
  /// The order decides, not the clock: one that was set back makes hours look alike at most, and then fewer are kept.
  package func kept(_ times: [Int64]) -> [Bool] {
    var kept = times.indices.map { $0 < newest }
    let hour: Int64 = 3_600_000
    let day = 24 * hour
    // The first day of 1970 was a Thursday; weeks begin on Mondays.
    for (count, length, shift) in [(hourly, hour, 0), (daily, day, 0), (weekly, 7 * day, 3 * day)] {
      var seen: Set<Int64> = []
      for (index, time) in times.enumerated() where seen.count < count {
        if seen.insert((time.addingClamped(shift)).flooredQuotient(by: length)).inserted { kept[index] = true }
      }
    }
    return kept
  }
}

extension Int64 {
  fileprivate func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }

  /// Rounded down, for times before 1970 too.
  fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
