import KeepsakeReplication

/// How a key of progress uses the values of the keys that it replaces.
struct EarlierKey: Sendable {
  /// All keys of which a value may be shown.
  var keys: [CellKey] = []
  /// The changes that reset each of them to its default.
  var resets: [CellDraft] = []
  /// Returns what they hold, under the rule of the later key; nil if they hold nothing.
  var value: @Sendable (_ cell: (CellKey) -> CellState?) -> CellValue? = { _ in nil }

  /// The number of keys that the later key replaces directly, without those that these keys had replaced before.
  var places: UInt64 = 0
}

extension ProgressKey {
  /// Replaces another key whose rule or type no longer fits. The other key's value is shown under this key, converted
  /// with `convert` and joined with what is recorded under this key.
  ///
  /// ```swift
  /// extension ProgressKey<Int> { static let stars = ProgressKey("stars", default: 0, rule: .max) }
  /// extension ProgressKey<Set<Int>> {
  ///   static let starsFound = ProgressKey("stars found", rule: .union)
  ///     .migrating(from: .stars) { stars in Set((1...100).prefix(while: { $0 <= stars })) }
  /// }
  /// ```
  ///
  /// The other key isn't changed. Older games still read and write it, and what they record later still counts here,
  /// because nothing is copied: the values are joined at each read. Older games don't see what is recorded here.
  ///
  /// - A `counter` adds both counts. A `latest` key shows what was set last under either, if both are `latest` keys,
  ///   and otherwise what was set here.
  /// - A reset here resets the other key, too.
  /// - `ProgressStore.changes` reports the other key under its own name.
  ///
  /// A key can replace several keys, also one after another. Costs a call of `convert` at each read. Not for keys of
  /// the rule `set` or dictionaries of those, because an element of the other key could not be removed.
  ///
  /// - Parameters:
  ///   - old: The key to replace.
  ///   - convert: Converts the other key's value. Not called for its default; returns nil for no value. It must return
  ///     the same result on every device, return more for more, and accept every value.
  /// - Returns: The key.
  public func migrating<Old>(
    from old: ProgressKey<Old>, _ convert: @escaping @Sendable (_ old: Old) -> Value?
  ) -> Self {
    precondition(!rule.verbs.contains(.remove), "the key \"\(name)\" is a set and can't replace another")
    precondition(old.key != key && !old.earlierKeys.contains(key), "the key \"\(name)\" can't replace itself")
    var later = self
    let (rule, before) = (rule, earlier)
    // Each replaced key counts under a writer of its own, or two of them would not add up. That writer is never stored,
    // and it is no opening's own.
    let places = (before?.places ?? 0) + 1
    later.earlier = EarlierKey(
      keys: [old.key] + old.earlierKeys + earlierKeys,
      resets: [old.resetting(to: old.defaultValue)] + (old.earlier?.resets ?? []) + (before?.resets ?? []),
      value: { cell in
        let others = before?.value(cell)
        guard let shown = old.shown(cell), let value = old.rule.value(shown), value != old.defaultValue,
          let converted = convert(value),
          let mine = rule.cell(of: converted, by: WriterID(places), stampedAs: shown.stamp)
        else { return others }
        return others?.joined(with: mine) ?? mine
      }, places: places)
    return later
  }

  var earlierKeys: [CellKey] { earlier?.keys ?? [] }

  /// Returns what the key shows, as a cell; nil before anything was recorded.
  func shown(_ cell: (CellKey) -> CellState?) -> CellValue? {
    let own = cell(key)?.value
    guard let earlier = earlier?.value(cell) else { return own }
    return own?.joined(with: earlier) ?? earlier
  }
}

extension ProgressRule {
  /// Makes a cell of the value that is never written; nil for a value that no cell can hold.
  fileprivate func cell(of value: Value, by writer: WriterID, stampedAs stamp: Stamp?) -> CellValue? {
    // Without a stamp of its own, the value ranks below everything that was set.
    let stamp = name == CellRule.latest.name ? stamp : nil
    let context = CellDraft.Context(
      writer: stamp?.writer ?? writer, caughtUp: stamp?.caughtUp ?? false,
      nowMilliseconds: stamp?.milliseconds ?? -Stamp.maximumMilliseconds)
    do {
      return try CellDraft(CellKey(collection: ProgressStore.collection, key: ""), change(value)).applied(
        to: nil, context)?.state.value
    } catch {
      return nil  // Not a number: as if nothing were there.
    }
  }
}
