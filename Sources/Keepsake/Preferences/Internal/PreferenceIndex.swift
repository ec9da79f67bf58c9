import KeepsakeReplication

/// Finds preferences by name, those of late in fewer steps: a game sets few settings, and those often.
///
/// Two spellings of one text are one name, as for `String`.
struct PreferenceIndex: Sendable {
  /// A power of two.
  private static let recentPlaces = 1_024

  private var local: [String: PreferenceSlot] = [:]
  private var synced: [String: PreferenceSlot] = [:]
  /// Which was found last of those whose names' marks end alike.
  private var recent = [PreferenceSlot?](repeating: nil, count: recentPlaces)

  init(capacity: Int) { local.reserveCapacity(capacity) }

  var slots: [PreferenceSlot] { Array(local.values) + Array(synced.values) }
  func count(synced isSynced: Bool) -> Int { isSynced ? synced.count : local.count }

  mutating func insert(_ slot: PreferenceSlot) {
    if slot.isSynced { synced[slot.name] = slot } else { local[slot.name] = slot }
  }

  mutating func slot(_ name: String, _ isSynced: Bool) -> PreferenceSlot? {
    guard let mark = Self.mark(of: name, isSynced) else { return isSynced ? synced[name] : local[name] }
    let place = Int(truncatingIfNeeded: mark) & (Self.recentPlaces - 1)
    if let slot = recent[place], slot.mark == mark, slot.isSynced == isSynced, slot.name == name { return slot }
    guard let slot = isSynced ? synced[name] : local[name] else { return nil }
    // Another spelling has another mark, and would only be in the way.
    if slot.mark == mark { recent[place] = slot }
    return slot
  }

  /// Few names have the same one. Nil for texts whose bytes aren't at hand.
  static func mark(of name: String, _ isSynced: Bool) -> UInt64? {
    name.utf8.withContiguousStorageIfAvailable { bytes in
      let rest = UnsafeRawBufferPointer(bytes)
      var mark = UInt64(truncatingIfNeeded: rest.count) << 1 | (isSynced ? 1 : 0)
      var offset = 0
      while offset + 8 <= rest.count {
        mix(rest.loadUnaligned(fromByteOffset: offset, as: UInt64.self), into: &mark)
        offset += 8
      }
      var last: UInt64 = 0
      while offset < rest.count {
        last = last << 8 | UInt64(rest[offset])
        offset += 1
      }
      mix(last, into: &mark)
      return mark
    }
  }

  private static func mix(_ word: UInt64, into mark: inout UInt64) {
    // The golden ratio's digits: an odd number without a pattern.
    let (high, low) = (mark ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    mark = high ^ low
  }
}
