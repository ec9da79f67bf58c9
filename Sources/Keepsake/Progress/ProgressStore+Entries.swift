// Values in dictionaries. Each is changed under its own name, and the others are neither sent nor asked for.
extension ProgressStore {
  /// Records a value in a dictionary of `max` or `min`.
  ///
  ///     try game.progress.record(61, at: "cave", for: .bestTimes)
  ///
  /// Throws as `record(_:for:)` does; likewise below.
  @discardableResult
  public func record<Key: ProgressValue, Entry>(
    _ value: Entry, at entry: Key, for key: ProgressKey<[Key: Entry]>
  ) throws -> Pending<Void> {
    try perform(key.draft(.record, [entry: value]))
  }

  /// Sets a value in a dictionary of `latest`.
  @discardableResult
  public func set<Key: ProgressValue, Entry>(
    _ value: Entry, at entry: Key, for key: ProgressKey<[Key: Entry]>
  ) throws -> Pending<Void> {
    try perform(key.draft(.set, [entry: value]))
  }

  /// Adds to a count in a dictionary of `counter`, or takes from it.
  ///
  /// A count remembers each opening of the game in which it was changed, with 24 bytes for ever, and a dictionary has
  /// ``maximumValueBytes`` for all of its counts. What is counted in every session is better kept under keys of its own.
  @discardableResult
  public func add<Key: ProgressValue>(_ amount: Int, at entry: Key, to key: ProgressKey<[Key: Int]>) throws -> Pending<Void> {
    try perform(key.draft(.add, [entry: amount]))
  }

  /// Puts an element into a set of a dictionary of `union` or `set`.
  @discardableResult
  public func insert<Key: ProgressValue, Element: ProgressValue>(
    _ element: Element, at entry: Key, into key: ProgressKey<[Key: Set<Element>]>
  ) throws -> Pending<Void> {
    try perform(key.draft(.insert, [entry: [element]]))
  }

  /// Takes an element out of a set of a dictionary of `set`, as `remove(_:from:)` does.
  @discardableResult
  public func remove<Key: ProgressValue, Element: ProgressValue>(
    _ element: Element, at entry: Key, from key: ProgressKey<[Key: Set<Element>]>
  ) throws -> Pending<Void> {
    try perform(key.removing([element], at: entry))
  }
}
