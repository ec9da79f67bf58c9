import Dispatch
import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// What the player chose: volume, difficulty, key bindings, the last hat.
///
///     extension PreferenceKey<Double> { static var volume: Self { PreferenceKey("volume", default: 0.8) } }
///
///     game.preferences[.volume] = 0.5                  // seen at once, by every thread
///     try game.preferences.set(keys, for: .bindings)   // the same, and throws for what can't be kept
///     game.preferences.remove(.volume)                 // its default again
///
/// Setting is a write to memory. What was set is handed to the disk together with what else was set, on a thread of its own, at the latest a
/// frame (16 ms) later on a machine that isn't overloaded, and by `flush`, a checkpoint or closing the game's data: what was set less than a
/// frame before a crash, or before the power goes, may be lost. A commit that fails is told by an incident, and what it held is kept in memory and tried again with the
/// next one. Setting what is there already writes nothing.
///
/// A preference is this device's alone unless its key says `synced`. Of a synced one the value set last counts, on all of the player's
/// devices; a change that comes from another one shows here and in `changes`.
///
/// What can't be read as the key's type is its default, and an incident (`Incident.Kind.unreadable`) says why; the stored value stays until it is set.
/// The same goes for one that was damaged on the disk.
///
/// Reads through the subscript, `contains` and `names` take part in Observation: `withObservationTracking` and views of SwiftUI notice
/// changes. Safe to use from any thread or actor; of two that set one key at once, the last one's value stays, in memory and in the store.
public final class Preferences: Sendable {
  static let collection = "preferences"
  /// The most preferences that hold a value, synced ones included: all are read when the game's data is opened.
  public static let maximumKeys = 10_000
  /// The most bytes of one value as it is kept: a MiB. More belongs into a saved game.
  public static let maximumValueBytes = 1 << 20
  /// The most bytes of one synced value, a little less than a cloud takes of any value.
  public static let maximumSyncedBytes = ExchangeRules.maximumCellBytes - 1024
  /// The most bytes of all values together: they stay in memory. 64 MiB.
  public static let maximumBytes = 64 << 20

  let core: GameCore
  let table: Mutex<PreferenceTable>
  /// Where commits are begun: never on the game's threads, and none of the game's code runs here.
  let queue = DispatchQueue(label: "keepsake.preferences", qos: .userInitiated)
  /// Where it is looked at what commits made of synced values. Whoever watches them is told here, and may block.
  let notificationQueue = DispatchQueue(label: "keepsake.preferences.news", qos: .userInitiated)
  /// Counts the readings of the store. Held while it is read, so that a greater number never stands for an older state.
  private let readings = Mutex<UInt64>(0)
  private let changeBroadcast = Broadcast<[String]>()
  /// Whether anybody ever asked for `changes`.
  private let hasListeners = Atomic(false)

  init(core: GameCore) throws {
    self.core = core
    let (kept, unreadable, cells) = try core.store.read { transaction in
      let (kept, unreadable) = try transaction.preferences()
      return (kept, unreadable, try transaction.cells(in: Self.collection))
    }
    table = Mutex(PreferenceTable(kept, cells))
    if unreadable > 0 {
      core.report(
        Incident(
          kind: .unreadable, message: "\(unreadable) preferences can't be read; their defaults are given until they are set", date: core.now
        ))
    }
  }

  // MARK: Reading and setting

  /// The value that was set last; the key's default if there is none, or none that can be read. Setting what can't be kept changes
  /// nothing and reports an incident: use `set` where the value is not the program's own.
  ///
  /// A read is a memory read. The first one of a stored value decodes it.
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

  /// The same for simple values, which take the shortest way.
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
    core.report(Incident(kind: .failedCommit, message: "a preference was not set: \(error)", date: core.now))
  }

  /// Sets a value.
  ///
  /// Costs a write to memory for truth values, numbers, text, bytes, dates, and types that have such a raw value; of anything else the value is
  /// encoded, too.
  ///
  /// Throws `GameDataError` with nothing changed: `tooLarge` beyond `maximumValueBytes`, `maximumSyncedBytes`, `maximumKeys` or `maximumBytes`,
  /// `misuse` for a name that can't be or is used as local and as synced, `closed`; and `ArchiveError`, or what the type throws, for a
  /// value that can't be encoded.
  public func set<Value>(_ value: Value, for key: PreferenceKey<Value>) throws {
    if let scalar = key.coding.scalar(of: value) {
      try put(scalar, key.given, key.isSynced)
    } else {
      try putChecked(.typed(value, key.coding.encode(value)), key.given, key.isSynced)
    }
  }

  /// Takes away what was set: the key's default counts again. Of a synced one, on every device.
  ///
  /// Throws `GameDataError` as `set` does. Does nothing where nothing was set.
  public func remove<Value>(_ key: PreferenceKey<Value>) throws { try putChecked(.absent, key.given, key.isSynced) }

  /// Whether a value was set, the default or another, and not removed since; whether it can be read isn't looked at.
  public func contains<Value>(_ key: PreferenceKey<Value>) -> Bool {
    let look = table.withLock { $0.look(key.given, key.isSynced) }
    look.watch.access()
    return look.content.isPresent
  }

  /// The names of all preferences that hold a value, sorted. Costs a pass over them.
  public var names: [String] {
    let (watch, names) = table.withLock { ($0.watchNames(), $0.names) }
    watch.access()
    return names
  }

  /// The names of preferences that were set or removed, here or on another device, as that happens. Whoever falls behind by more than 256
  /// misses the oldest. The loop ends when the game's data is closed. For a game loop that never lets tasks run,
  /// `GameData.takeChanges` tells what came from other devices.
  public var changes: AsyncStream<[String]> {
    hasListeners.store(true, ordering: .releasing)
    return changeBroadcast.stream()
  }

  /// Returns when everything that was set before is durable. Blocks for a wait on the disk; returns at once if nothing was set.
  ///
  /// Throws `StoreError` if that fails, and `timedOut` when the time is over first; what was set stays in memory and is tried again either way.
  public func flush(within limit: Duration = .seconds(10)) throws {
    let deadline = core.environment.uptime() + limit
    func left() -> Duration { max(deadline - core.environment.uptime(), .zero) }
    guard let pending = try commit(within: left()) else { return }
    try pending.wait(within: left())
    // Of a commit that was under way before, and failed.
    if table.withLock({ $0.hasFailed }), let again = try commit(within: left()) { try again.wait(within: left()) }
  }

  /// The same in a task, without a limit in time.
  public func flush() async throws {
    guard let pending = try commit() else { return }
    try await pending.value
    // Of a commit that was under way before, and failed.
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

  /// Decodes what is there, and remembers it; nil and an incident if it is no such value.
  private func decoded<Value>(_ look: PreferenceTable.Look, for key: PreferenceKey<Value>) -> Value? {
    let type = ObjectIdentifier(Value.self)
    guard look.refusedType != type else { return nil }
    do {
      guard let data = try look.content.archive() else {
        throw GameDataError(.misuse, "another program keeps something by another rule under its name")
      }
      let value = try key.coding.decode(data)
      // Only what stands for the very same bytes may take their place: another type may read less of them.
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
    case .contested: report("is used as a preference of this device and as a synced one: take two names", key)
    case .keptOtherwise:
      report("is kept as \(key.isSynced ? "one of this device" : "a synced one"), and its key says otherwise: take another name", key)
    }
  }

  private func report<Value>(_ what: String, _ key: PreferenceKey<Value>) {
    core.report(
      Incident(
        kind: .unreadable, message: "the preference \"\(key.name.prefix(80))\" \(what); its default is given until it is set",
        date: core.now))
  }

  // MARK: Changes

  /// Most sets go the first, short way.
  private func put(_ scalar: PreferenceScalar, _ name: String, _ isSynced: Bool) throws {
    guard table.withLock({ $0.replace(scalar, name, isSynced) }) else { return try putChecked(.scalar(scalar), name, isSynced) }
    if hasListeners.load(ordering: .acquiring) { changeBroadcast.send([name.canonical]) }
  }

  private func putChecked(_ content: PreferenceContent, _ name: String, _ isSynced: Bool) throws {
    var outcome = try table.withLock { try $0.set(content, name, isSynced, emits: false) }
    if case .watched(let watchers) = outcome {
      watchers.willSet()
      // They were told that it changes: whatever comes of it, they are told that it has.
      defer { watchers.didSet() }
      outcome = try table.withLock { try $0.set(content, name, isSynced, emits: true) }
    }
    guard case .set(let schedules) = outcome else { return }
    if schedules { scheduleCommit() }
    if hasListeners.load(ordering: .acquiring) { changeBroadcast.send([name.canonical]) }
  }

  /// Sets a preference of this device to the archive that another store holds of it.
  func take(_ archive: Data, named name: String) throws { try take(.bytes(archive), named: name) }

  /// Sets a preference of this device whose type isn't known.
  func take(_ content: PreferenceContent, named name: String) throws { try putChecked(content, name, false) }

  /// Takes what came from other devices, and tells of it.
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
    core.emit(.preferences(shown))
  }

  func finish() { changeBroadcast.finish() }
}
