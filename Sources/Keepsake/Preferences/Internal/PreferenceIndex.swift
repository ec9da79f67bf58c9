import KeepsakeReplication

/// Finds preferences by name, recently used ones in fewer steps: a game sets few settings, but sets them often.
///
/// Two spellings of one text are the same name, as for `String`.
struct PreferenceIndex: Sendable {
  /// The number of entries in `recent`. A power of two.
  private static let recentPlaces = 1_024

  private var local: [String: PreferenceSlot] = [:]
  private var synced: [String: PreferenceSlot] = [:]
  /// The slots found last, each at the index given by the low bits of its name's mark. The dictionaries retain them:
  /// one that leaves a dictionary leaves here first.
  private var recent = [Unmanaged<PreferenceSlot>?](repeating: nil, count: recentPlaces)

  init(capacity: Int) { local.reserveCapacity(capacity) }

  var slots: [PreferenceSlot] { Array(local.values) + Array(synced.values) }
  func count(synced isSynced: Bool) -> Int { isSynced ? synced.count : local.count }

  mutating func insert(_ slot: PreferenceSlot) {
    let replaced =
      slot.isSynced ? synced.updateValue(slot, forKey: slot.name) : local.updateValue(slot, forKey: slot.name)
    if replaced != nil { recent = Array(repeating: nil, count: Self.recentPlaces) }
  }

  mutating func slot(_ name: String, _ isSynced: Bool) -> PreferenceSlot? {
    unmanagedSlot(name, isSynced)?.takeUnretainedValue()
  }

  /// Returns the slot without retaining it, which would take longer than finding it. Valid as long as the index.
  mutating func unmanagedSlot(_ name: String, _ isSynced: Bool) -> Unmanaged<PreferenceSlot>? {
    guard let mark = Self.mark(of: name, isSynced) else { return stored(name, isSynced) }
    let place = Int(truncatingIfNeeded: mark) & (Self.recentPlaces - 1)
    if let slot = recent[place],
      slot._withUnsafeGuaranteedRef({ $0.mark == mark && $0.isSynced == isSynced && $0.name == name })
    {
      return slot
    }
    guard let slot = stored(name, isSynced) else { return nil }
    // Another spelling has a different mark, so caching the slot under it would only evict another one.
    if slot._withUnsafeGuaranteedRef({ $0.mark == mark }) { recent[place] = slot }
    return slot
  }

  private func stored(_ name: String, _ isSynced: Bool) -> Unmanaged<PreferenceSlot>? {
    (isSynced ? synced[name] : local[name]).map { .passUnretained($0) }
  }

  /// Returns a hash of a name; few names share one. Nil for text without contiguous bytes.
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
    // The digits of the golden ratio: an odd number without a pattern.
    let (high, low) = (mark ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    mark = high ^ low
  }
}
