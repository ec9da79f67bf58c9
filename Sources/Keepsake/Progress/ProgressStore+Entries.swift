// Values in dictionaries. Each is changed under its own name; the others are neither sent nor read.
extension ProgressStore {
  /// Records a value in a dictionary of `max` or `min`.
  ///
  /// ```swift
  /// try game.progress.record(61, at: "cave", for: .bestTimes)
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - entry: Its name in the dictionary.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func record<Key: ProgressValue, Entry>(
    _ value: Entry, at entry: Key, for key: ProgressKey<[Key: Entry]>
  ) throws -> Pending<Void> {
    try perform(key.draft(.record, [entry: value]))
  }

  /// Sets a value in a dictionary of `latest`.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - entry: Its name in the dictionary.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func set<Key: ProgressValue, Entry>(
    _ value: Entry, at entry: Key, for key: ProgressKey<[Key: Entry]>
  ) throws -> Pending<Void> {
    try perform(key.draft(.set, [entry: value]))
  }

  /// Adds to a count in a dictionary of `counter`, or subtracts from it.
  ///
  /// A count takes 24 bytes for each opening of the game that changed it, permanently, and a dictionary has
  /// ``maximumValueBytes`` for all of its counts. Use keys of their own for what is counted in every session.
  ///
  /// - Parameters:
  ///   - amount: The difference; may be negative.
  ///   - entry: Its name in the dictionary.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func add<Key: ProgressValue>(
    _ amount: Int, at entry: Key, to key: ProgressKey<[Key: Int]>
  ) throws -> Pending<Void> {
    try perform(key.draft(.add, [entry: amount]))
  }

  /// Inserts an element into a set in a dictionary of `union` or `set`.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - entry: The set's name in the dictionary.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func insert<Key: ProgressValue, Element: ProgressValue>(
    _ element: Element, at entry: Key, into key: ProgressKey<[Key: Set<Element>]>
  ) throws -> Pending<Void> {
    try perform(key.draft(.insert, [entry: [element]]))
  }

  /// Removes an element from a set in a dictionary of `set`, as `remove(_:from:)` does.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - entry: The set's name in the dictionary.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func remove<Key: ProgressValue, Element: ProgressValue>(
    _ element: Element, at entry: Key, from key: ProgressKey<[Key: Set<Element>]>
  ) throws -> Pending<Void> {
    try perform(key.removing([element], at: entry))
  }
}
