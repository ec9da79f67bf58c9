/// What an operator wants done with devices whose store went back to an older state.
package enum SetBackPolicy: String, CaseIterable, Hashable, Sendable {
  /// Nothing beside the mark that the studio sees.
  case flag
  /// The device's game is told, so that it can show it. Everything is synced as ever.
  case ask
  /// The game is told, and the cloud takes no cells and versions of the device until the studio removes the mark.
  case refuse
}

// Finding out that a device's store went back to an older state.
extension CloudAcceptance {
  /// Compares a request with what its device has reported before, and marks the device if it confirms what an earlier
  /// response has told it. Writes nothing unless something is found. This isn't a change of the container.
  ///
  /// A store that was never set back sends no cursor below an earlier one, except from the start of a container on, and
  /// then between two pages. So neither a cursor of seq 0 nor one with `ahead` counts. One that is older than the marks
  /// that are remembered does, and what is staged beside a cursor makes no difference.
  ///
  /// - Parameter isForeign: Whether the cursor isn't of this history.
  /// - Returns: What the response tells the device, each time until a response has arrived there; and what the device
  ///   is marked for.
  static func noticeSetBack(
    in request: ExchangeRequest, isForeign: Bool, of device: DeviceID, now: Int64,
    in storage: inout some ContainerStorage
  ) throws -> (told: SetBack?, mark: DeviceSetBacks.Mark?) {
    let before = try storage.setBacks(of: device)
    var known = before
    let cursor = request.cursor
    let isComparable = !isForeign && cursor.ahead == nil && cursor.seq > 0
    // The latest report may be that of the set-back store already, whose response was lost.
    let furthest = isComparable ? max(try storage.reached(by: device), known.unconfirmed?.from ?? 0) : 0
    if cursor.seq < furthest {
      // Whatever this confirms is as old as the store.
      let told = SetBack(from: furthest, to: cursor.seq)
      known.unconfirmed = told
      if storage.faults.countsLateAsSetBack { known.confirm(told, now: now) }
      if known != before { try storage.setSetBacks(known, of: device) }
      return (told, known.mark)
    }
    // A late request may have raised what wasn't confirmed since the device was told. What this cloud has never seen,
    // has counted, or has forgotten, confirms nothing.
    if let confirmed = request.setBack, let shown = known.unconfirmed, confirmed.from <= shown.from,
      !storage.faults.forgetsSetBacks
    {
      known.confirm(confirmed, now: now)
      try storage.setSetBacks(known, of: device)
    }
    return (nil, known.mark)
  }

  /// Returns what the device is told about itself.
  static func shown(_ mark: DeviceSetBacks.Mark?, under policy: SetBackPolicy) -> SetBackMark? {
    guard policy != .flag, let mark else { return nil }
    return SetBackMark(atMilliseconds: mark.lastMilliseconds, isRefused: policy == .refuse)
  }

  /// Returns the outcome of a request of a device from which nothing is taken: it is marked, or may only read. Nil if
  /// the request has neither cells nor versions, or is taken.
  static func refusal(
    of request: ExchangeRequest, with mark: DeviceSetBacks.Mark?, under policy: SetBackPolicy,
    _ access: ContainerAccess
  ) -> ExchangeOutcome? {
    guard !request.cells.isEmpty || !request.versions.isEmpty else { return nil }
    if policy == .refuse, mark != nil { return .refused([.asSetBack]) }
    return access == .readOnly ? .refused([.asReadOnly]) : nil
  }

  /// Removes the mark of a device, and what it hasn't confirmed.
  package static func clearSetBack(of device: DeviceID, in storage: inout some ContainerStorage) throws {
    if try !storage.setBacks(of: device).isEmpty { try storage.setSetBacks(DeviceSetBacks(), of: device) }
  }
}
