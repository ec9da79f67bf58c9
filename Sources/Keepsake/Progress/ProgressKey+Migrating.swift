import KeepsakeReplication

/// What a key of progress does with what is under those whose place it took.
struct EarlierKey: Sendable {
  /// All of which something may be shown.
  var keys: [CellKey] = []
  /// What makes each of them empty.
  var resets: [CellDraft] = []
  /// What they hold, under the rule of the later key; nil for nothing.
  var value: @Sendable (_ cell: (CellKey) -> CellState?) -> CellValue? = { _ in nil }

  /// Keys whose place the later key took itself, not those that these had taken before.
  var places: UInt64 = 0
}

extension ProgressKey {
  /// Replaces another key whose rule or type no longer fits. The other key's value is shown here as `convert` makes it,
  /// joined with what is recorded here.
  ///
  /// ```swift
  /// extension ProgressKey<Int> { static var stars: Self { .max("stars", default: 0) } }
  /// extension ProgressKey<Set<Int>> {
  ///   static var starsFound: Self {
  ///     .union("stars found").migrating(from: .stars) { stars in Set((1...100).prefix(while: { $0 <= stars })) }
  ///   }
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
  ///   - convert: Makes a value of the other key's value, which isn't its default; nil for nothing. It must give the
  ///     same result on every device, give more for more, and accept every value.
  /// - Returns: The key.
  public func migrating<Old>(
    from old: ProgressKey<Old>, _ convert: @escaping @Sendable (_ old: Old) -> Value?
  ) -> Self {
    precondition(!rule.verbs.contains(.remove), "the key \"\(name)\" is a set, and can't take the place of another")
    precondition(old.key != key && !old.earlierKeys.contains(key), "the key \"\(name)\" can't take its own place")
    var later = self
    let (rule, before) = (rule, earlier)
    // Each counts under a name of its own, or two would not add up. It is never written, and no opening's own.
    let places = (before?.places ?? 0) + 1
    later.earlier = EarlierKey(
      keys: [old.key] + old.earlierKeys + earlierKeys,
      resets: [old.resetting(to: old.defaultValue)] + (old.earlier?.resets ?? []) + (before?.resets ?? []),
      value: { cell in
        let others = before?.value(cell)
        guard let shown = old.shown(cell), let value = old.rule.value(shown), value != old.defaultValue, let converted = convert(value),
          let mine = rule.cell(of: converted, by: WriterID(places), stampedAs: shown.stamp)
        else { return others }
        return others?.joined(with: mine) ?? mine
      }, places: places)
    return later
  }

  var earlierKeys: [CellKey] { earlier?.keys ?? [] }

  /// What the key shows, as a cell; nil before anything was recorded.
  func shown(_ cell: (CellKey) -> CellState?) -> CellValue? {
    let own = cell(key)?.value
    guard let earlier = earlier?.value(cell) else { return own }
    return own?.joined(with: earlier) ?? earlier
  }
}

extension ProgressRule {
  /// The value as a cell that was never written; nil for what no cell can hold.
  fileprivate func cell(of value: Value, by writer: WriterID, stampedAs stamp: Stamp?) -> CellValue? {
    // Without one of its own it ranks below everything that was set.
    let stamp = name == CellRule.latest.name ? stamp : nil
    let context = CellDraft.Context(
      writer: stamp?.writer ?? writer, caughtUp: stamp?.caughtUp ?? false,
      nowMilliseconds: stamp?.milliseconds ?? -Stamp.maximumMilliseconds)
    do {
      return try CellDraft(CellKey(collection: ProgressStore.collection, key: ""), change(value)).applied(to: nil, context)?.state.value
    } catch {
      return nil  // Not a number: as if nothing were there.
    }
  }
}
