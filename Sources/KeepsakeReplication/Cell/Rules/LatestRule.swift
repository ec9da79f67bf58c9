extension CellRule {
  /// The value that was set last. {"latest": {"stamp": {...}, "value": {"string": "Ada"}}}
  package static let latest = CellRule(
    "latest", rank: 2,
    payload: { if case .latest(let stamp, let value) = $0 { LatestValue(stamp: stamp, value: value) } else { nil } },
    value: { .latest($0.stamp, $0.value) },
    join: { left, right in
      if left.stamp != right.stamp { return left.stamp > right.stamp ? left : right }
      return LatestValue(stamp: left.stamp, value: Swift.max(left.value, right.value))
    },
    size: { $0.value.size + 24 },
    objection: { latest, _ in
      guard latest.value.isOrdered else { return CellValue.notANumber }
      // The magnitude of the smallest number doesn't fit into its type.
      let isInRange = latest.stamp.milliseconds.magnitude <= Stamp.maximumMilliseconds.magnitude
      return isInRange ? nil : "the time of writing is out of range"
    },
    text: { latest, style in "latest \(style.scalar(latest.value)) (\(style.time(latest.stamp.milliseconds)))" },
    change: { (change, held, application) throws(CellError) in
      guard case .set(let value) = change else {
        throw application.mismatch(held.map { .latest($0.stamp, $0.value) }, asked: change.rule.name)
      }
      return try LatestValue(setting: application.checked(value), over: held, application.context)
    },
    written: { $0 }, read: { $0 })
}

private struct LatestValue: Codable {
  var stamp: Stamp
  var value: Scalar
}

extension LatestValue {
  /// Creates the value that is set; if the same value is held already, keeps that, because a new stamp would only cause
  /// traffic to other devices.
  init(setting value: Scalar, over held: LatestValue?, _ context: CellDraft.Context) {
    var milliseconds = Swift.max(
      -Stamp.maximumMilliseconds, Swift.min(Stamp.maximumMilliseconds, context.nowMilliseconds))
    if let held {
      let outranks = context.outranked.map { $0 < held.stamp } ?? true
      if held.value == value, outranks, held.stamp.caughtUp || !context.caughtUp {
        self = held
        return
      }
      if context.followsStamps { milliseconds = Swift.max(milliseconds, held.stamp.next) }
    }
    if let outranked = context.outranked { milliseconds = Swift.max(milliseconds, outranked.next) }
    self.init(
      stamp: Stamp(caughtUp: context.caughtUp, milliseconds: milliseconds, writer: context.writer), value: value)
  }
}

extension Stamp {
  /// Times farther from 1970 than this are refused: it is far beyond any clock, and one can still be added to it.
  package static let maximumMilliseconds: Int64 = 1 << 53

  /// The time for a value that has to outrank the one with this stamp.
  fileprivate var next: Int64 { Swift.min(milliseconds, Self.maximumMilliseconds - 1) + 1 }
}
