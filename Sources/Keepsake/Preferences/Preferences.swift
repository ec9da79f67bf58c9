import Dispatch
import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// The player's settings: volume, difficulty, key bindings, the last hat.
///
/// ```swift
/// extension PreferenceKey<Double> { static let volume = PreferenceKey("volume", default: 0.8) }
///
/// game.preferences[.volume] = 0.5                  // visible immediately, on every thread
/// try game.preferences.set(keys, for: .bindings)   // the same, and throws if it can't be kept
/// try game.preferences.remove(.volume)             // back to the default
/// ```
///
/// Setting a value writes to memory. A background thread commits what was set, together, within about 16 ms on a
/// machine that isn't overloaded, and also at `flush`, a checkpoint and `close`. A crash or a power failure loses at
/// most what was set in that time. If a commit fails, an incident reports it, and its values stay in memory and are
/// tried again with the next one.
///
/// A preference belongs to this device unless its key is `synced`. The value of a synced one that was set last holds on
/// all of the player's devices; a change from another device shows here and in `changes`.
///
/// A value that can't be read as the key's type, or is damaged on disk, gives the key's default, and an incident
/// (`Incident.Kind.unreadable`) reports why. The stored value stays until the preference is set.
///
/// Reads through the subscript, `contains` and `names` take part in Observation: `withObservationTracking` and SwiftUI
/// views notice changes. Safe to use from any thread or actor. If two threads set a key at the same time, the last
/// value stays, in memory and in the store.
public final class Preferences: Sendable {
  static let collection = "preferences"
  /// The maximum number of preferences that have a value, synced ones included. All are read at opening.
  public static let maximumKeys = 10_000
  /// The maximum size of one value as it is stored: 1 MiB. Keep more in a saved game.
  public static let maximumValueBytes = 1 << 20
  /// The maximum size of one synced value in bytes, a little less than a cloud accepts.
  public static let maximumSyncedBytes = ExchangeRules.maximumCellBytes - 1024
  /// The maximum size of all values together, which stay in memory: 64 MiB.
  public static let maximumBytes = 64 << 20

  let core: GameCore
  let table: Mutex<PreferenceTable>
  /// Starts scheduled commits, so that they don't run on the game's threads. None of the game's code runs here.
  let queue = DispatchQueue(label: "keepsake.preferences", qos: .userInitiated)
  /// Checks what commits made of synced values. Observers of these are notified here, and may block.
  let notificationQueue = DispatchQueue(label: "keepsake.preferences.news", qos: .userInitiated)
  /// Counts the reads of the store. Held during a read, so that a greater number never belongs to an older state.
  private let readings = Mutex<UInt64>(0)
  private let changeBroadcast = Broadcast<[String]>()
  /// Whether `changes` has ever been read.
  private let hasListeners = Atomic(false)

  init(core: GameCore) throws {
    self.core = core
    let (kept, unreadable, cells) = try core.store.read { transaction in
      let (kept, unreadable) = try transaction.preferences()
      return (kept, unreadable, try transaction.cells(in: Self.collection))
    }
    table = Mutex(PreferenceTable(kept, cells))
    if unreadable > 0 {
      core.events.report(
        Incident(
          kind: .unreadable,
          message: "\(unreadable) preferences can't be read; their defaults are used until they are set", date: core.now
        ))
    }
  }

  // MARK: Reading and setting

  /// The value that was set last; the key's default if none was set, or if it can't be read.
  ///
  /// Setting a value that can't be stored changes nothing and reports an incident: use `set` for values that the
  /// program doesn't choose itself. A read is a memory read; the first read of a stored value decodes it.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or the key's default.
  public subscript<Value>(key: PreferenceKey<Value>) -> Value {
    get { value(for: key) }
    set {
      do {
        try set(newValue, for: key)
      } catch {
        report(error)
      }
    }
  }

  /// The value of a simple type that was set last; the key's default if none was set, or if it can't be read.
  ///
  /// As for other types, but setting it never encodes it.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or the key's default.
  public subscript<Value: PreferenceValue>(key: PreferenceKey<Value>) -> Value {
    get { value(for: key) }
    @inlinable set { setScalar(newValue.preferenceScalar, key.given, key.isSynced) }
  }

  @usableFromInline
  func setScalar(_ scalar: PreferenceScalar, _ name: String, _ isSynced: Bool) {
    do {
      try put(scalar, name, isSynced)
    } catch {
      report(error)
    }
  }

  private func report(_ error: any Error) {
    core.events.report(Incident(kind: .failedCommit, message: "a preference was not set: \(error)", date: core.now))
  }

  /// Sets a preference.
  ///
  /// Costs a write to memory for Booleans, numbers, text, bytes, dates, and types with such a raw value; other values
  /// are also encoded.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `tooLarge` beyond `maximumValueBytes`, `maximumSyncedBytes`, `maximumKeys` or
  ///   `maximumBytes`, `misuse` for an invalid name or one that is used both as local and as synced, or `closed`;
  ///   `ArchiveError`, or the type's own error, for a value that can't be encoded. Nothing has changed then.
  public func set<Value>(_ value: Value, for key: PreferenceKey<Value>) throws {
    if let scalar = key.coding.scalar(of: value) {
      try put(scalar, key.given, key.isSynced)
    } else {
      try putChecked(.typed(value, key.coding.encode(value)), key.given, key.isSynced)
    }
  }

  /// Removes a preference's value, so that the key's default holds again; for a synced one, on every device. Does
  /// nothing if none was set.
  ///
  /// - Parameter key: The key.
  /// - Throws: `GameDataError` as `set`.
  public func remove<Value>(_ key: PreferenceKey<Value>) throws { try putChecked(.absent, key.given, key.isSynced) }

  /// Whether a value was set and not removed since, readable or not. It may equal the default.
  ///
  /// - Parameter key: The key.
  /// - Returns: Whether the preference has a value.
  public func contains<Value>(_ key: PreferenceKey<Value>) -> Bool {
    let look = table.withLock { $0.look(key.given, key.isSynced) }
    look.watch.access()
    return look.content.isPresent
  }

  /// The names of all preferences that have a value, sorted. Costs a pass over them.
  public var names: [String] {
    let (watch, names) = table.withLock { ($0.watchNames(), $0.names) }
    watch.access()
    return names
  }

  /// The names of preferences that were set or removed, on this device or another, as it happens. A reader that falls
  /// behind by more than 256 changes misses the oldest. Ends when the game's data is closed. A game loop that doesn't
  /// run tasks gets other devices' changes from `GameData.takeChanges`.
  public var changes: AsyncStream<[String]> {
    hasListeners.store(true, ordering: .releasing)
    return changeBroadcast.stream()
  }

  /// Blocks until everything that was set earlier is durable. Returns immediately if nothing was.
  ///
  /// - Parameter limit: How long to wait.
  /// - Throws: `StoreError` if the commit fails, or with `timedOut`. The values stay in memory and are tried again in
  ///   both cases.
  public func flush(within limit: Duration = .seconds(10)) throws {
    let deadline = core.environment.uptime() + limit
    func left() -> Duration { max(deadline - core.environment.uptime(), .zero) }
    guard let pending = try commit(within: left()) else { return }
    try pending.wait(within: left())
    // For values of a commit that was already under way, and failed.
    if table.withLock({ $0.hasFailed }), let again = try commit(within: left()) { try again.wait(within: left()) }
  }

  /// Waits until everything that was set earlier is durable.
  ///
  /// - Throws: `StoreError` if the commit fails. The values stay in memory and are tried again.
  public func flush() async throws {
    guard let pending = try commit() else { return }
    try await pending.value
    // For values of a commit that was already under way, and failed.
    if table.withLock({ $0.hasFailed }), let again = try commit() { try await again.value }
  }

  // MARK: Values

  private func value<Value>(for key: PreferenceKey<Value>) -> Value {
    let look = table.withLock { $0.look(key.given, key.isSynced) }
    look.watch.access()
    if let objection = look.objection { report(objection, key) }
    switch look.content {
    case .absent: return key.defaultValue
    case .scalar(let scalar):
      if let value = key.coding.value(of: scalar) { return value }
    case .typed(let value, _):
      if let value = value as? Value { return value }
    case .kept, .bytes, .foreign: break
    }
    return decoded(look, for: key) ?? key.defaultValue
  }

  /// Decodes a stored value and caches it. If it isn't a value of the key's type, reports an incident and returns nil.
  private func decoded<Value>(_ look: PreferenceTable.Look, for key: PreferenceKey<Value>) -> Value? {
    let type = ObjectIdentifier(Value.self)
    guard look.refusedType != type else { return nil }
    do {
      guard let data = try look.content.archive() else {
        throw GameDataError(.misuse, "another program stores a value with another rule under its name")
      }
      let value = try key.coding.decode(data)
      // Cached as a scalar only if that encodes to exactly the same bytes: another type may read less of them.
      if let scalar = key.coding.scalar(of: value), try scalar.encoded() == data {
        table.withLock { $0.remember(.scalar(scalar), key.given, key.isSynced, version: look.version) }
      } else {
        table.withLock { $0.remember(.typed(value, data), key.given, key.isSynced, version: look.version) }
      }
      return value
    } catch {
      table.withLock { $0.refuse(type, key.given, key.isSynced, version: look.version) }
      report("can't be read as \(Value.self): \(error)", key)
      return nil
    }
  }

  private func report<Value>(_ objection: PreferenceObjection, _ key: PreferenceKey<Value>) {
    switch objection {
    case .contested: report("is used as a preference of this device and as a synced one: use two names", key)
    case .keptOtherwise:
      report(
        """
        is stored as \(key.isSynced ? "one of this device" : "a synced one"), but its key declares the opposite: use \
        another name
        """,
        key)
    }
  }

  private func report<Value>(_ what: String, _ key: PreferenceKey<Value>) {
    core.events.report(
      Incident(
        kind: .unreadable,
        message: "the preference \"\(key.name.prefix(80))\" \(what); its default is used until it is set",
        date: core.now))
  }

  // MARK: Changes

  /// Sets a simple value. Most calls take the first, short path.
  private func put(_ scalar: PreferenceScalar, _ name: String, _ isSynced: Bool) throws {
    guard table.withLock({ $0.replace(scalar, name, isSynced) }) else {
      return try putChecked(.scalar(scalar), name, isSynced)
    }
    if hasListeners.load(ordering: .acquiring) { changeBroadcast.send([name.canonical]) }
  }

  private func putChecked(_ content: PreferenceContent, _ name: String, _ isSynced: Bool) throws {
    var outcome = try table.withLock { try $0.set(content, name, isSynced, emits: false) }
    if case .watched(let watchers) = outcome {
      watchers.willSet()
      // Observers were notified that it will change, so they must also be notified that it has, whatever the outcome.
      defer { watchers.didSet() }
      outcome = try table.withLock { try $0.set(content, name, isSynced, emits: true) }
    }
    guard case .set(let schedules) = outcome else { return }
    if schedules { scheduleCommit() }
    if hasListeners.load(ordering: .acquiring) { changeBroadcast.send([name.canonical]) }
  }

  /// Sets a preference of this device to an archive from another store.
  func take(_ archive: Data, named name: String) throws { try take(.bytes(archive), named: name) }

  /// Sets a preference of this device whose type isn't known.
  func take(_ content: PreferenceContent, named name: String) throws { try putChecked(content, name, false) }

  /// Shows what arrived from other devices, and emits the change.
  func received(_ keys: [CellKey]) throws {
    let names = keys.filter { $0.collection == Self.collection }.map(\.key)
    guard !names.isEmpty else { return }
    var shown: [String] = []
    let (reading, states) = try readings.withLock { last in
      last += 1
      let states = try core.store.read { transaction in
        try names.map { ($0, try transaction.cell(CellKey(collection: Self.collection, key: $0))) }
      }
      return (last, states)
    }
    for (name, state) in states {
      guard let watchers = table.withLock({ $0.update(name, state, reading: reading) }) else { continue }
      watchers.willSet()
      let isShown = table.withLock { $0.receive(name, state, reading: reading) }
      watchers.didSet()
      if isShown { shown.append(name) }
    }
    guard !shown.isEmpty else { return }
    shown.sort()
    changeBroadcast.send(shown)
    core.events.emit(.preferences(shown))
  }

  func finish() {
    changeBroadcast.finish()
    endExitWork()
  }

  private func endExitWork() { if let number = table.withLock({ $0.exitWork.take() }) { ExitWork.end(number) } }

  deinit { endExitWork() }
}
