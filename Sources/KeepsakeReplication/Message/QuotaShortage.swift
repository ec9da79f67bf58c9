/// What a player may keep in the cloud, what is kept, and what the refused items would take in addition, in bytes.
package struct QuotaShortage: Hashable, Sendable, Codable {
  package var limit: Int64
  package var used: Int64
  package var needed: Int64

  package init(limit: Int64, used: Int64, needed: Int64) {
    self.limit = limit
    self.used = used
    self.needed = needed
  }
}

/// What a player may keep in the cloud, and what is kept, in bytes, so that a device learns when there is room again.
package struct QuotaUse: Hashable, Sendable, Codable {
  package var limit: Int64
  package var used: Int64

  package init(limit: Int64, used: Int64) {
    self.limit = limit
    self.used = used
  }

  /// Returns what is missing for this many more bytes; nil if they fit.
  package func shortage(for needed: Int64) -> QuotaShortage? {
    let (sum, overflow) = used.addingReportingOverflow(needed)
    return overflow || sum > limit ? QuotaShortage(limit: limit, used: used, needed: needed) : nil
  }
}
