/// What a cloud has recorded of a device whose store went back to an older state.
package struct DeviceSetBacks: Hashable, Sendable, Codable {
  /// A store that certainly went back.
  package struct Mark: Hashable, Sendable, Codable {
    /// How often.
    package var count: Int
    /// When that was noticed last, in milliseconds since 1970.
    package var lastMilliseconds: Int64
    /// The last time: from which seq to which.
    package var from: UInt64
    package var to: UInt64

    package init(count: Int, lastMilliseconds: Int64, from: UInt64, to: UInt64) {
      (self.count, self.lastMilliseconds, self.from, self.to) = (count, lastMilliseconds, from, to)
    }
  }

  /// What a request has shown and the device hasn't confirmed. It stays if the request was only late, which does no
  /// harm: a store that has never been set back sends no cursor below it any more.
  package var unconfirmed: SetBack?
  /// Nil for a device that was never set back, or whose mark was removed.
  package var mark: Mark?

  package init(unconfirmed: SetBack? = nil, mark: Mark? = nil) { (self.unconfirmed, self.mark) = (unconfirmed, mark) }

  package var isEmpty: Bool { unconfirmed == nil && mark == nil }

  /// Marks the device for what it confirms, unless that was the last time already: a confirmation is repeated until a
  /// response to one arrives.
  package mutating func confirm(_ confirmed: SetBack, now: Int64) {
    unconfirmed = nil
    if let mark, mark.from == confirmed.from, mark.to == confirmed.to { return }
    mark = Mark(count: (mark?.count ?? 0) + 1, lastMilliseconds: now, from: confirmed.from, to: confirmed.to)
  }
}
