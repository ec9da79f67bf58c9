import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The conflict that a key has when it is used for the first time.
enum PreferenceObjection: Sendable {
  /// The same name is used as local and as synced.
  case contested
  /// There is no value under the key's declaration, but one under the other.
  case keptOtherwise
}

/// All preferences in memory, and which of them the store doesn't have yet. Protected by the lock of `Preferences`;
/// runs none of the game's code.
struct PreferenceTable: Sendable {
  /// The maximum number of slots for names that have no value and were only read. Further names share one watch,
  /// because a game may ask for anything.
  private static let maximumAbsent = 10_000

  private var index: PreferenceIndex
  /// The slots that were set and aren't committed yet, in the order in which they were first set.
  private var dirty: [PreferenceSlot] = []
  private var present = 0
  private var bytes = 0
  /// Notified when a name gets or loses a value.
  private var namesWatch: PreferenceWatch?
  /// Notified for names that have no slot of their own.
  private var othersWatch: PreferenceWatch?
  private var commitsUnderWay = 0
  /// Whether a commit failed and its values wait for the next one.
  private(set) var hasFailed = false
  /// While a failed commit's values wait: what tries again when the program ends (`ExitWork`).
  var exitWork: UInt64?
  var isScheduled = false
  var isClosed = false

  init(_ kept: [KeptPreference], _ cells: [CellUpdate]) {
    index = PreferenceIndex(capacity: kept.count)
    for row in kept { add(PreferenceSlot(row.name, isSynced: false, content: .kept(row))) }
    for cell in cells { add(PreferenceSlot(cell.key.key, isSynced: true, content: Self.content(of: cell.state))) }
  }

  private mutating func add(_ slot: PreferenceSlot) {
    index.insert(slot)
    if slot.content.isPresent { present += 1 }
    bytes += slot.content.size
  }

  /// Returns the content of a cell. Empty data represents a value that was removed.
  static func content(of cell: CellState?) -> PreferenceContent {
    guard let cell else { return .absent }
    guard case .latest(_, .data(let data)) = cell.value else { return .foreign }
    return data.isEmpty ? .absent : .bytes(data)
  }

  // MARK: Reading

  var names: [String] {
    Set(index.slots.lazy.filter(\.content.isPresent).map(\.name)).sorted()
  }

  mutating func watchNames() -> PreferenceWatch {
    let watch = namesWatch ?? PreferenceWatch()
    namesWatch = watch
    return watch
  }

  struct Look {
    var content: PreferenceContent
    var version: UInt64
    var watch: PreferenceWatch
    var refusedType: ObjectIdentifier?
    var objection: PreferenceObjection?
  }

  /// Returns the current content for a key of the game.
  mutating func look(_ name: String, _ isSynced: Bool) -> Look {
    var objection: PreferenceObjection?
    let found: PreferenceSlot
    if let slot = index.slot(name, isSynced) {
      found = slot
    } else if index.count(synced: isSynced) < present + Self.maximumAbsent, PreferenceLimits.isName(name.canonical) {
      found = PreferenceSlot(name.canonical, isSynced: isSynced)
      add(found)
    } else {
      let watch = othersWatch ?? PreferenceWatch()
      othersWatch = watch
      return Look(content: .absent, version: 0, watch: watch)
    }
    if !found.isUsed { objection = use(found) }
    let watch = found.watch ?? PreferenceWatch()
    found.watch = watch
    return Look(
      content: found.content, version: found.version, watch: watch, refusedType: found.refusedType, objection: objection
    )
  }

  /// Called once for each name and session, so that a use costs one look-up.
  private mutating func use(_ slot: PreferenceSlot) -> PreferenceObjection? {
    slot.isUsed = true
    guard let other = index.slot(slot.name, !slot.isSynced) else { return nil }
    if other.isUsed {
      slot.isContested = true
      return .contested
    }
    return !slot.content.isPresent && other.content.isPresent ? .keptOtherwise : nil
  }

  /// Caches a decoded value, if the content hasn't changed since.
  mutating func remember(_ content: PreferenceContent, _ name: String, _ isSynced: Bool, version: UInt64) {
    guard let slot = index.slot(name, isSynced), slot.version == version, slot.content.isPresent else { return }
    bytes += content.size - slot.content.size
    slot.content = content
  }

  /// Records that the content can't be read as a type.
  mutating func refuse(_ type: ObjectIdentifier, _ name: String, _ isSynced: Bool, version: UInt64) {
    guard let slot = index.slot(name, isSynced), slot.version == version else { return }
    slot.refusedType = type
  }

  // MARK: Setting

  /// The result of a set.
  enum Outcome {
    case unchanged
    /// These have to be notified first; nothing has changed yet.
    case watched(PreferenceWatchers)
    /// The value is set. `schedules` is true if the caller has to schedule a commit.
    case set(schedules: Bool)
  }

  /// Sets a value. Throws `GameDataError` if it can't be stored.
  ///
  /// - Parameter emits: Whether observers were already notified, so that the change can be made.
  mutating func set(_ content: PreferenceContent, _ name: String, _ isSynced: Bool, emits: Bool) throws -> Outcome {
    guard !isClosed else {
      throw GameDataError(.closed, "the game's data is closed: preferences can't be set any more")
    }
    let slot: PreferenceSlot
    let known = index.slot(name, isSynced)
    if let known {
      slot = known
      // A value that is already stored can be set and removed, whatever its name is.
      if !slot.content.isPresent { try PreferenceLimits.check(slot.name) }
      if !slot.isUsed { _ = use(slot) }
    } else {
      slot = PreferenceSlot(name.canonical, isSynced: isSynced)
      try PreferenceLimits.check(slot.name)
      _ = use(slot)
    }
    guard !slot.isContested else {
      throw GameDataError(
        .misuse, "\"\(name.prefix(80))\" is used as a preference of this device and as a synced one: use two names")
    }
    if case .foreign = slot.content {
      throw GameDataError(
        .misuse,
        """
        "\(name.prefix(80))" is a value that another program stored with another rule: use another name for the \
        preference
        """)
    }
    guard !content.isSame(as: slot.content) else { return .unchanged }
    let (size, before) = (content.size, slot.content.size)
    try PreferenceLimits.check(size: size, of: name, isSynced: isSynced)
    let change = (content.isPresent ? 1 : 0) - (slot.content.isPresent ? 1 : 0)
    if change > 0 || size > before {
      try PreferenceLimits.check(count: present + change, adds: change > 0, bytes: bytes - before + size)
    }
    if !emits {
      let watchers = PreferenceWatchers(
        value: known == nil ? othersWatch : slot.watch, names: change != 0 ? namesWatch : nil)
      if !watchers.isEmpty { return .watched(watchers) }
    }
    if known == nil { add(slot) }
    put(content, in: slot)
    enqueue(slot)
    guard !isScheduled else { return .set(schedules: false) }
    isScheduled = true
    return .set(schedules: true)
  }

  /// Replaces a number by another if that needs no checks: it takes the same space, is known to be allowed, its commit
  /// is scheduled, and no observer has to be notified. Otherwise changes nothing and returns false.
  mutating func replace(_ scalar: PreferenceScalar, _ name: String, _ isSynced: Bool) -> Bool {
    guard isScheduled, !isClosed, let slot = index.unmanagedSlot(name, isSynced) else { return false }
    return slot._withUnsafeGuaranteedRef { $0.replace(scalar) }
  }

  private mutating func put(_ content: PreferenceContent, in slot: PreferenceSlot) {
    bytes += content.size - slot.content.size
    present += (content.isPresent ? 1 : 0) - (slot.content.isPresent ? 1 : 0)
    slot.content = content
    slot.version &+= 1
    slot.refusedType = nil
  }

  private mutating func enqueue(_ slot: PreferenceSlot) {
    guard !slot.isDirty else { return }
    slot.isDirty = true
    dirty.append(slot)
  }

  // MARK: Committing

  /// A value that is being committed to the store.
  struct Change: Sendable {
    let slot: PreferenceSlot
    let content: PreferenceContent
    /// What the store has for a local preference; nil while an earlier commit of it is undecided.
    let stored: PreferenceContent?
  }

  /// Whether the store lacks something, or may lack it again if a commit under way fails.
  var isUnsettled: Bool { !dirty.isEmpty || commitsUnderWay > 0 }
  var hasUncommitted: Bool { !dirty.isEmpty }

  /// Takes everything that was set and not committed, with its current content.
  mutating func take() -> [Change] {
    let changes = dirty.map { Change(slot: $0, content: $0.content, stored: $0.inFlight == 0 ? $0.stored : nil) }
    for slot in dirty {
      slot.isDirty = false
      slot.inFlight += 1
    }
    dirty = []
    hasFailed = false
    commitsUnderWay += 1
    return changes
  }

  /// Ends a successful commit: what was taken is in the store, or was refused. For refused values, `stored` is nil, and
  /// what the store has doesn't change.
  mutating func committed(_ changes: [(change: Change, stored: PreferenceContent?)]) {
    commitsUnderWay -= 1
    for (change, stored) in changes {
      change.slot.inFlight -= 1
      if let stored { change.slot.stored = stored }
    }
  }

  /// Ends a failed commit: what was taken isn't in the store, and waits for the next commit, unless it was set again
  /// since.
  mutating func failed(_ changes: [Change]) {
    commitsUnderWay -= 1
    for change in changes {
      change.slot.inFlight -= 1
      enqueue(change.slot)
    }
    hasFailed = hasFailed || !changes.isEmpty
  }

  // MARK: Other devices

  /// Returns the observers to notify if the cell's state is new here; nil if it isn't, or if this device has set a
  /// value since, which will replace it.
  ///
  /// - Parameter reading: The number of the read that returned the state; a greater number is a later read.
  mutating func update(_ name: String, _ state: CellState?, reading: UInt64) -> PreferenceWatchers? {
    let content = Self.content(of: state)
    let slot = slotForUpdate(name)
    guard reading > slot.reading else { return nil }
    // Set even if nothing is new: an older read that hasn't been shown yet must not be shown any more.
    slot.reading = reading
    guard !slot.isDirty, slot.inFlight == 0, !isShown(content, in: slot) else { return nil }
    return PreferenceWatchers(value: slot.watch, names: content.isPresent != slot.content.isPresent ? namesWatch : nil)
  }

  private func isShown(_ content: PreferenceContent, in slot: PreferenceSlot) -> Bool {
    switch (content, slot.content) {
    case (.foreign, .foreign): return true
    case (.bytes(let data), .scalar(let scalar)):
      // A value that can't be encoded was never committed either.
      return (try? scalar.encoded()) == data
    default: return content.isSame(as: slot.content)
    }
  }

  /// Returns the slot for a name that has a cell in the store, and creates it if needed. Views that read the name
  /// before it had a slot are notified through the watch that all names without a slot share.
  private mutating func slotForUpdate(_ name: String) -> PreferenceSlot {
    if let slot = index.slot(name, true) { return slot }
    let slot = PreferenceSlot(name, isSynced: true)
    slot.watch = othersWatch
    add(slot)
    return slot
  }

  /// Shows the cell's state, unless a value was set or the store was read again in the meantime. Returns whether it
  /// did.
  mutating func receive(_ name: String, _ state: CellState?, reading: UInt64) -> Bool {
    guard let slot = index.slot(name, true), slot.reading == reading, !slot.isDirty, slot.inFlight == 0 else {
      return false
    }
    put(Self.content(of: state), in: slot)
    return true
  }
}
