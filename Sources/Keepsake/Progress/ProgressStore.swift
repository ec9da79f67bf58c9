import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// Values that never go backwards, joined across all of a player's devices by each key's rule.
///
/// ```swift
/// try game.progress.record(6, for: .level)        // another device's 2 can't undo it
/// try game.progress.insert("brave", into: .badges)
/// try game.progress.add(3, to: .coinsFound)
/// try game.progress.remove("rose", from: .favourites)
/// try game.progress.record(61, at: "cave", for: .bestTimes)
/// game.progress[.level]
/// ```
///
/// A change is visible to later reads immediately, and durable when its `Pending` reports so. A crash loses only
/// changes that no `Pending` had confirmed. Reads are memory reads. Safe to use from any thread.
public final class ProgressStore: Sendable {
  static let collection = "progress"
  /// The maximum number of keys in a game. Each takes memory on every device.
  public static let maximumKeys = 10_000

  /// The maximum size of all names and values together, in bytes, approximately as in memory: 16 MiB. All of them are
  /// read at the start and kept in memory. Values from other devices are accepted beyond it.
  public static let maximumBytes = 16 * 1024 * 1024

  /// The maximum size to which a device can fill one set or dictionary, in bytes. A change is sent as a change, but
  /// received as the whole value. A cloud accepts twice as much, so that what two devices filled separately can be
  /// joined.
  public static let maximumValueBytes = ExchangeRules.maximumCellBytes / 2

  private let core: GameCore
  private let view: Mutex<ProgressView>
  private let facts: Mutex<DeviceFacts>
  private let keys = Broadcast<[String]>()
  /// Held from showing a change until it is submitted to the store, so that both happen in the same order.
  private let order = Mutex(())

  init(core: GameCore) throws {
    self.core = core
    let (cells, facts) = try core.store.read { (try $0.cells(in: Self.collection), try $0.facts()) }
    view = Mutex(ProgressView(cells))
    self.facts = Mutex(facts)
  }

  /// The key's value; its default before anything is recorded. A memory read.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, joined with what is still being committed.
  public subscript<Value>(key: ProgressKey<Value>) -> Value {
    guard let value = shown(key) else { return key.defaultValue }
    return key.rule.value(value) ?? key.defaultValue
  }

  /// Returns what the key holds, joined with the values of the keys that it replaces; nil before anything is recorded.
  private func shown<Value>(_ key: ProgressKey<Value>) -> CellValue? {
    guard key.earlier != nil else { return view.withLock { $0[key.key] }?.value }
    let cells = view.withLock { view in
      Dictionary(([key.key] + key.earlierKeys).map { ($0, view[$0]) }, uniquingKeysWith: { first, _ in first })
    }
    // Outside the lock, because the game's own function may read another key.
    return key.shown { cells[$0] ?? nil }
  }

  /// One value of a dictionary; nil before anything is recorded under that name. Doesn't read the others.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - entry: The value's name in the dictionary.
  /// - Returns: The value; nil if there is none.
  public subscript<Key: ProgressValue, Entry>(key: ProgressKey<[Key: Entry]>, at entry: Key) -> Entry? {
    guard case .dictionary(let entries)? = shown(key), let value = entries[entry.element] else { return nil }
    return key.rule.value(.dictionary([entry.element: value]))?[entry]
  }

  /// Whether anything was ever recorded under a key, on this device or another.
  ///
  /// - Parameter key: The key.
  /// - Returns: Whether the key has a value.
  public func contains<Value>(_ key: ProgressKey<Value>) -> Bool { shown(key) != nil }

  /// Records a value under a `max` or `min` key, or several values of a dictionary of these.
  ///
  /// A value that isn't greater (or smaller, with `min`) than the known one changes nothing.
  ///
  /// Returns immediately, unless 64 commits are already waiting for the disk. Discard the handle if nothing depends on
  /// it: if the commit fails then, because the disk is full, say, or the game's folder was deleted, `incidents` of the
  /// game's data reports it, and the value is no longer shown.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: `GameDataError` with `misuse` for NaN, an invalid name, a key whose rule doesn't support this, or a key
  ///   that holds a value of another rule; with `tooLarge` if the value or all progress would become too large; with
  ///   `tooNew` if the key holds a value of a rule that only a newer release knows; with `closed` if the game's data is
  ///   closed.
  @discardableResult
  public func record<Value>(_ value: Value, for key: ProgressKey<Value>) throws -> Pending<Void> {
    try perform(key.draft(.record, value))
  }

  /// Sets the value of a `latest` key.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func set<Value>(_ value: Value, for key: ProgressKey<Value>) throws -> Pending<Void> {
    try perform(key.draft(.set, value))
  }

  /// Adds to a `counter`, or subtracts from it.
  ///
  /// - Parameters:
  ///   - amount: The difference; may be negative.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func add(_ amount: Int, to key: ProgressKey<Int>) throws -> Pending<Void> {
    try perform(key.draft(.add, amount))
  }

  /// Adds to a counter that is nil until something is counted.
  ///
  /// - Parameters:
  ///   - amount: The difference; may be negative.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func add(_ amount: Int, to key: ProgressKey<Int?>) throws -> Pending<Void> {
    try perform(key.draft(.add, amount))
  }

  /// Inserts an element into a `union` or a `set`.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func insert<Element: ProgressValue>(
    _ element: Element, into key: ProgressKey<Set<Element>>
  ) throws -> Pending<Void> {
    try perform(key.draft(.insert, [element]))
  }

  /// Removes an element from a `set`, on every device.
  ///
  /// It stays if another device inserts it again, or has inserted it in a way that this device doesn't know of yet.
  /// Removing an element that isn't in the set changes nothing.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - key: The key.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`.
  @discardableResult
  public func remove<Element: ProgressValue>(
    _ element: Element, from key: ProgressKey<Set<Element>>
  ) throws -> Pending<Void> {
    try perform(key.removing([element]))
  }

  /// Resets a key to a value, on every device. This is the only way to go backwards.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - value: The new value.
  /// - Returns: A handle that reports when the change is durable.
  /// - Throws: As `record(_:for:)`; `GameDataError` with `notCaughtUp` until this store has once received everything
  ///   that its cloud has.
  @discardableResult
  public func reset<Value>(_ key: ProgressKey<Value>, to value: Value) throws -> Pending<Void> {
    let others = view.withLock { view in (key.earlier?.resets ?? []).filter { view[$0.key] != nil } }
    return try perform([key.resetting(to: value)] + others)
  }

  /// The names of keys that other devices changed, as the changes arrive. Ends when the game's data is closed.
  public var changes: AsyncStream<[String]> { keys.stream() }

  /// The names of all keys that have a value, sorted.
  public var names: [String] { view.withLock { $0.keys.map(\.key).sorted() } }

  // MARK: Commits

  func perform(_ draft: CellDraft) throws -> Pending<Void> { try perform([draft]) }

  private func perform(_ drafts: [CellDraft]) throws -> Pending<Void> {
    let pending = try performing(drafts) { try self.core.commits.submit(cells: drafts) }
    return Pending(pending.map { _ in })
  }

  /// Shows the drafts immediately, then commits them with `commit`, in the order in which they were shown.
  func performing(
    _ drafts: [CellDraft], _ commit: () throws -> PendingCommit<CommitPipeline.Committed>
  ) throws -> PendingCommit<CommitPipeline.Committed> {
    guard !drafts.isEmpty else { return try commit() }
    let facts = facts.withLock { $0 }
    let context = CellDraft.Context(
      writer: core.store.writer, caughtUp: facts.caughtUp,
      nowMilliseconds: core.environment.nowMilliseconds() &+ facts.serverOffsetMilliseconds, moves: facts.moves ?? 0)
    return try order.withLock { _ in
      let number = try view.withLock { view in
        let (cells, growth) = try shown(drafts, context, in: view)
        return view.begin(cells, growth: growth)
      }
      let pending: PendingCommit<CommitPipeline.Committed>
      do {
        // May block while the store is behind; the view stays readable.
        pending = try commit()
      } catch {
        _ = view.withLock { $0.end(number, with: []) }
        throw error
      }
      pending.observe { [weak self] result in
        let cells: [CellUpdate]
        // A failed change is no longer shown. Its pending commit has the error.
        if case .success(let committed) = result { cells = committed.cells } else { cells = [] }
        self?.ended(number, cells)
      }
      return pending
    }
  }

  /// Returns the cells as the drafts change them in the view, and by how many bytes the view grows.
  private func shown(
    _ drafts: [CellDraft], _ context: CellDraft.Context, in view: ProgressView
  ) throws -> (cells: [CellKey: CellState], growth: Int) {
    var shown: [CellKey: CellState] = [:]
    var growth = 0
    for draft in drafts {
      if let objection = NameRule.value.objection(to: draft.key.key) { throw GameDataError(.misuse, objection) }
      let known = shown[draft.key] ?? view[draft.key]
      let context = draft.context(context) { shown[$0] ?? view[$0] }
      guard let change = try core.translating({ try draft.applied(to: known, context) }) else { continue }
      let update = CellUpdate(key: draft.key, state: change.state)
      let before = known.map { CellUpdate(key: draft.key, state: $0).size } ?? 0
      if let refusal = ExchangeRules.objection(to: update, over: known) {
        throw GameDataError(
          refusal.reason == .tooLarge ? .tooLarge : .misuse,
          "\"\(draft.key.key.prefix(80))\" can't be recorded: \(refusal.message)")
      }
      guard !change.state.value.isGathered || change.state.value.size <= Self.maximumValueBytes || update.size <= before
      else {
        throw GameDataError(
          .tooLarge,
          """
          "\(draft.key.key.prefix(80))" is full: a set or a dictionary may take at most \(Self.maximumValueBytes) \
          bytes. Spread it over several keys, remove elements, or reset it
          """)
      }
      growth += update.size - before
      shown[draft.key] = change.state
    }
    let new = shown.keys.count { view[$0] == nil }
    guard new == 0 || view.keys.count + new <= Self.maximumKeys else {
      throw GameDataError(.tooLarge, "progress can have at most \(Self.maximumKeys) keys")
    }
    guard growth <= 0 || view.bytes + growth <= Self.maximumBytes else {
      throw GameDataError(
        .tooLarge,
        """
        all progress together may take at most \(Self.maximumBytes) bytes. Keep large values in a saved game, and \
        reset what isn't needed
        """)
    }
    return (shown, growth)
  }

  private func ended(_ number: UInt64, _ cells: [CellUpdate]) {
    let older = view.withLock { $0.end(number, with: cells) }
    guard !older.isEmpty else { return }
    do {
      try join(older)
    } catch {
      core.events.report(Incident(kind: .unreadable, message: "progress can't be read: \(error)", date: core.now))
    }
  }

  // MARK: Other devices

  /// Adds what arrived from other devices to the view, and emits the change.
  func received(_ keys: [CellKey]) throws {
    let mine = keys.filter { $0.collection == Self.collection }
    try join(mine)
    emit(mine)
  }

  /// Shows what the store holds after it joined another player, even if that is less, and emits the change.
  func reload() throws {
    let changed = try view.withLock { view in
      // Under the lock, so that nothing committed in the meantime is missed.
      let (cells, facts) = try core.store.read { (try $0.cells(in: Self.collection), try $0.facts()) }
      self.facts.withLock { $0 = facts }
      return view.replace(with: cells)
    }
    emit(changed)
  }

  private func join(_ keys: [CellKey]) throws {
    let (updates, facts) = try core.store.read { transaction in
      let updates = try keys.compactMap { key in try transaction.cell(key).map { CellUpdate(key: key, state: $0) } }
      return (updates, try transaction.facts())
    }
    self.facts.withLock { $0 = facts }
    view.withLock { $0.join(updates) }
  }

  private func emit(_ changed: [CellKey]) {
    guard !changed.isEmpty else { return }
    let names = changed.map(\.key).sorted()
    keys.send(names)
    core.events.emit(.progress(names))
  }

  func finish() { keys.finish() }
}
