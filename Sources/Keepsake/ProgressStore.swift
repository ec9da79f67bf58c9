import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// Values that must never go backwards, joined over all of a player's devices by the rule of each key.
///
///     try game.progress.record(6, for: .level)        // another device's 2 can't undo it
///     try game.progress.insert("brave", into: .badges)
///     try game.progress.add(3, to: .coinsFound)
///     game.progress[.level]
///
/// A record is seen at once by the reads that follow and is durable when its `Pending` says so; nothing is lost by a crash
/// but what no `Pending` had confirmed. Reads are memory reads. Safe to use from any thread.
public final class ProgressStore: Sendable {
  static let collection = "progress"
  /// The most keys that a game may hold in all; each costs memory on every device.
  public static let maximumKeys = 10_000

  private let core: GameCore
  private let view: Mutex<ProgressView>
  private let facts: Mutex<DeviceFacts>
  private let keys = Broadcast<[String]>()
  /// Held from when a change is shown until it is handed to the store: both happen in one order.
  private let order = Mutex(())

  init(core: GameCore) throws {
    self.core = core
    let (cells, facts) = try core.store.read { (try $0.cells(in: Self.collection), try $0.facts()) }
    view = Mutex(ProgressView(cells))
    self.facts = Mutex(facts)
  }

  /// What is known of the key; its default before anything was recorded.
  public subscript<Value>(key: ProgressKey<Value>) -> Value {
    guard let state = view.withLock({ $0[key.key] }) else { return key.defaultValue }
    return key.value(state.value) ?? key.defaultValue
  }

  /// Whether anything was ever recorded under the key, here or on another device.
  public func contains<Value>(_ key: ProgressKey<Value>) -> Bool { view.withLock { $0[key.key] != nil } }

  /// Records a value under a `max` or `min` key. A smaller one than is known (or greater, with `min`) changes nothing.
  ///
  /// Throws `GameDataError` for not-a-number, for a name too long, and for a key that holds a value of another rule.
  @discardableResult
  public func record<Value>(_ value: Value, for key: ProgressKey<Value>) throws -> Pending<Void> {
    try perform(Self.recording(value, key))
  }

  /// Sets a `latest` key.
  @discardableResult
  public func set<Value>(_ value: Value, for key: ProgressKey<Value>) throws -> Pending<Void> {
    try perform(Self.setting(value, key))
  }

  /// Adds to a `counter`, or takes from it.
  @discardableResult
  public func add(_ amount: Int, to key: ProgressKey<Int>) throws -> Pending<Void> {
    try perform(Self.adding(amount, key))
  }

  /// Puts an element into a `union` key.
  @discardableResult
  public func insert<Element: ProgressValue>(
    _ element: Element, into key: ProgressKey<Set<Element>>
  ) throws -> Pending<Void> {
    try perform(Self.inserting([element], key))
  }

  /// Starts the key anew, on every device: the only way back.
  ///
  /// Throws `GameDataError.Code.notCaughtUp` before this store has once heard everything from its cloud.
  @discardableResult
  public func reset<Value>(_ key: ProgressKey<Value>, to value: Value) throws -> Pending<Void> {
    try perform(CellDraft(key.key, .reset(Self.change(value, key))))
  }

  /// The names of keys whose values other devices changed, as they arrive. The loop ends when the game's data is closed.
  public var changes: AsyncStream<[String]> { keys.stream() }

  /// The names of all keys that hold something, sorted.
  public var names: [String] { view.withLock { $0.keys.map(\.key).sorted() } }

  // MARK: Drafts

  static func recording<Value>(_ value: Value, _ key: ProgressKey<Value>) throws -> CellDraft {
    guard key.rule == .max || key.rule == .min else { throw mismatch(key, "record", "max or min") }
    return CellDraft(key.key, change(value, key))
  }

  static func setting<Value>(_ value: Value, _ key: ProgressKey<Value>) throws -> CellDraft {
    guard key.rule == .latest else { throw mismatch(key, "set", "latest; a join never sets") }
    return CellDraft(key.key, change(value, key))
  }

  static func adding(_ amount: Int, _ key: ProgressKey<Int>) throws -> CellDraft {
    guard key.rule == .counter else { throw mismatch(key, "add", "counter") }
    return CellDraft(key.key, change(amount, key))
  }

  static func inserting<Element: ProgressValue>(
    _ elements: Set<Element>, _ key: ProgressKey<Set<Element>>
  ) throws -> CellDraft {
    guard key.rule == .union else { throw mismatch(key, "insert", "union") }
    return CellDraft(key.key, change(elements, key))
  }

  private static func change<Value>(_ value: Value, _ key: ProgressKey<Value>) -> CellDraft.Change {
    let scalars = key.scalars(value)
    // Every rule but union makes exactly one scalar.
    let scalar = scalars.first ?? .int(0)
    switch key.rule {
    case .max: return .max(scalar)
    case .min: return .min(scalar)
    case .latest: return .set(scalar)
    case .union: return .insert(Set(scalars))
    case .counter:
      guard case .int(let amount) = scalar else { return .add(plus: 0, minus: 0) }
      return .add(plus: amount > 0 ? amount.magnitude : 0, minus: amount < 0 ? amount.magnitude : 0)
    }
  }

  private static func mismatch<Value>(_ key: ProgressKey<Value>, _ verb: String, _ wants: String) -> GameDataError {
    GameDataError(.misuse, "`\(verb)` is for keys with the rule \(wants); \"\(key.name)\" has \(key.rule)")
  }

  // MARK: Commits

  private func perform(_ draft: CellDraft) throws -> Pending<Void> {
    let pending = try performing([draft]) { try self.core.commit(cells: [draft]) }
    return Pending(pending.map { _ in })
  }

  /// Shows the drafts at once, then commits them with `commit`, in the order in which they were shown.
  func performing(
    _ drafts: [CellDraft], _ commit: () throws -> PendingCommit<GameCore.Committed>
  ) throws -> PendingCommit<GameCore.Committed> {
    guard !drafts.isEmpty else { return try commit() }
    let facts = facts.withLock { $0 }
    let context = CellDraft.Context(
      writer: core.store.writer, caughtUp: facts.caughtUp,
      nowMilliseconds: core.environment.nowMilliseconds() &+ facts.serverOffsetMilliseconds)
    return try order.withLock { _ in
      let number = try view.withLock { view in
        let shown = try shown(drafts, context, in: view)
        return view.begin(shown)
      }
      let pending: PendingCommit<GameCore.Committed>
      do {
        // May block while the store is behind; the view stays readable.
        pending = try commit()
      } catch {
        view.withLock { $0.end(number, with: []) }
        throw error
      }
      pending.observe { [weak self] result in
        let cells: [CellUpdate]
        // What failed is shown no longer; whoever waits for it hears why.
        if case .success(let committed) = result { cells = committed.cells } else { cells = [] }
        self?.view.withLock { $0.end(number, with: cells) }
      }
      return pending
    }
  }

  /// What the drafts make of the view.
  private func shown(
    _ drafts: [CellDraft], _ context: CellDraft.Context, in view: ProgressView
  ) throws -> [CellKey: CellState] {
    var shown: [CellKey: CellState] = [:]
    for draft in drafts {
      let change = try core.translating { try draft.applied(to: shown[draft.key] ?? view[draft.key], context) }
      guard let change else { continue }
      let update = CellUpdate(key: draft.key, state: change.state)
      if let refusal = ExchangeRules.objection(to: update) {
        throw GameDataError(
          refusal.reason == .tooLarge ? .tooLarge : .misuse,
          "\"\(draft.key.key.prefix(80))\" can't be recorded: \(refusal.message)")
      }
      shown[draft.key] = change.state
    }
    guard view.keys.union(shown.keys).count <= Self.maximumKeys else {
      throw GameDataError(.tooLarge, "progress holds \(Self.maximumKeys) keys at most")
    }
    return shown
  }

  /// Takes what came from other devices into the view, and tells of it.
  func received(_ keys: [CellKey]) throws {
    let mine = keys.filter { $0.collection == Self.collection }
    let (updates, facts) = try core.store.read { transaction in
      let updates = try mine.compactMap { key in
        try transaction.cell(key).map { CellUpdate(key: key, state: $0) }
      }
      return (updates, try transaction.facts())
    }
    self.facts.withLock { $0 = facts }
    view.withLock { $0.join(updates) }
    guard !mine.isEmpty else { return }
    self.keys.send(mine.map(\.key).sorted())
    core.tell(.progress(mine.map(\.key).sorted()))
  }

  func finish() { keys.finish() }
}
