/// One line of what must be reached.
public struct Goal {
  /// Whether more is better, as in "times as fast", or less, as in "times as long".
  public enum Direction { case atLeast, atMost }

  public let what: String
  public let must: Double
  public let aim: Double
  public let reached: Double
  public let direction: Direction
  public let unit: String

  public var meetsMust: Bool { meets(must) }
  public var meetsAim: Bool { meets(aim) }
  public var verdict: String { meetsAim ? "yes, the aim too" : meetsMust ? "yes" : "**no**" }

  public func text(_ value: Double) -> String { value.isFinite ? Format.number(value) + unit : "not measured" }

  public init(what: String, must: Double, aim: Double, reached: Double, direction: Direction, unit: String) {
    (self.what, self.must, self.aim, self.reached) = (what, must, aim, reached)
    (self.direction, self.unit) = (direction, unit)
  }

  private func meets(_ limit: Double) -> Bool {
    switch direction {
    case .atLeast: reached >= limit
    case .atMost: reached <= limit
    }
  }
}

extension [Goal] {
  /// As a table, and below it what isn't met.
  public var table: String {
    Format.table(
      ["", "must", "aim", "reached", "met"],
      map { goal in
        let sign = goal.direction == .atLeast ? "≥" : "≤"
        return [
          goal.what, "\(sign) \(goal.text(goal.must))", "\(sign) \(goal.text(goal.aim))", goal.text(goal.reached),
          goal.verdict,
        ]
      }, left: [4])
  }

  public var unmet: String? {
    let unmet = filter { !$0.meetsMust }
    guard !unmet.isEmpty else { return nil }
    return unmet.map { "NOT MET: \($0.what): must \($0.text($0.must)), reached \($0.text($0.reached))" }.joined(
      separator: "\n")
  }
}
