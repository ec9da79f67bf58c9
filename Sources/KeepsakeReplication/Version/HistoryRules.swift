/// Rules for which versions of a slot's past are kept whole, so that they can be loaded and restored.
///
/// Keeps the newest ones, then the last of each hour, each day and each week in which the slot was saved. Heads, pinned
/// versions, what the last ten deletes removed, and the merge base of a conflict are kept regardless of the rules.
public struct HistoryRules: Sendable, Hashable {
  /// The number of newest versions kept.
  public var newest: Int
  /// The number of hours of which the last version is kept.
  public var hourly: Int
  /// The number of days of which the last version is kept.
  public var daily: Int
  /// The number of weeks of which the last version is kept.
  public var weekly: Int

  /// Creates rules. Counts below 0 mean 0. Hours, days and weeks in which nothing was saved don't count.
  ///
  /// - Parameters:
  ///   - newest: The number of newest versions to keep.
  ///   - hourly: The number of hours of which to keep the last version.
  ///   - daily: The number of days, in UTC, of which to keep the last version.
  ///   - weekly: The number of weeks, from Monday to Sunday in UTC, of which to keep the last version.
  public init(newest: Int = 20, hourly: Int = 24, daily: Int = 30, weekly: Int = 52) {
    self.newest = newest
    self.hourly = hourly
    self.daily = daily
    self.weekly = weekly
  }

  /// 20 newest, 24 hours, 30 days, 52 weeks: at most 126 versions.
  public static let standard = HistoryRules()
  /// Nothing is ever pruned.
  public static let everything = HistoryRules(newest: .max, hourly: 0, daily: 0, weekly: 0)

  /// Returns which of the versions are kept. Times are milliseconds since 1970 by the saving device's clock, in the
  /// order of the saves, newest first.
  ///
  /// The order decides, not the clock: a clock that was set back can at most make hours look alike, so that fewer
  /// versions are kept.
  package func kept(_ times: [Int64]) -> [Bool] {
    var kept = times.indices.map { $0 < newest }
    let hour: Int64 = 3_600_000
    let day = 24 * hour
    // January 1, 1970 was a Thursday; weeks begin on Monday.
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
  /// Rounds down, also for times before 1970.
  fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
