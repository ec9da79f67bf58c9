import Foundation
import KeepsakeReplication
import KeepsakeStore

/// What a key that is used for the first time is found to be at odds with.
enum PreferenceObjection: Sendable {
  /// The same name is used as local and as synced.
  case contested
  /// There is nothing here, but a value under the other declaration.
  case keptOtherwise
}

/// All preferences in memory, and which of them the store doesn't have yet. Behind the lock of `Preferences`; runs no code of the game's.
struct PreferenceTable: Sendable {
  /// Names that hold nothing and were only looked at share one place beyond this many: a game may ask for anything.
  private static let maximumAbsent = 10_000

  private var index: PreferenceIndex
  /// Set and not yet committed, in the order of their first set.
  private var dirty: [PreferenceSlot] = []
  private var present = 0
  private var bytes = 0
  /// Told when a name begins or ends to hold a value.
  private var namesWatch: PreferenceWatch?
  /// Told for names that have no place of their own.
  private var othersWatch: PreferenceWatch?
  private var commitsUnderWay = 0
  /// A commit failed, and what it held waits for the next.
  private(set) var hasFailed = false
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

  /// No bytes stand for a value that was removed.
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

  /// What is there, for a key of the game's.
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
      content: found.content, version: found.version, watch: watch, refusedType: found.refusedType, objection: objection)
  }

  /// Once for each name and session, so that a use costs one look-up.
  private mutating func use(_ slot: PreferenceSlot) -> PreferenceObjection? {
    slot.isUsed = true
    guard let other = index.slot(slot.name, !slot.isSynced) else { return nil }
    if other.isUsed {
      slot.isContested = true
      return .contested
    }
    return !slot.content.isPresent && other.content.isPresent ? .keptOtherwise : nil
  }

  /// Keeps what was decoded, if it is still what is there.
  mutating func remember(_ content: PreferenceContent, _ name: String, _ isSynced: Bool, version: UInt64) {
    guard let slot = index.slot(name, isSynced), slot.version == version, slot.content.isPresent else { return }
    bytes += content.size - slot.content.size
    slot.content = content
  }

  /// Keeps that what is there is no value of a type.
  mutating func refuse(_ type: ObjectIdentifier, _ name: String, _ isSynced: Bool, version: UInt64) {
    guard let slot = index.slot(name, isSynced), slot.version == version else { return }
    slot.refusedType = type
  }

  // MARK: Setting

  /// What comes of a set.
  enum Outcome {
    case unchanged
    /// These have to be told first; nothing was changed yet.
    case watched(PreferenceWatchers)
    /// Done; whether somebody has to see to the commit.
    case set(schedules: Bool)
  }

  /// Puts a value in its place. Throws `GameDataError` for what can't be kept.
  ///
  /// - Parameter emits: Whether those who watch were told, so that it can be done.
  mutating func set(_ content: PreferenceContent, _ name: String, _ isSynced: Bool, emits: Bool) throws -> Outcome {
    guard !isClosed else { throw GameDataError(.closed, "the game's data is closed: nothing can be set any more") }
    let slot: PreferenceSlot
    let known = index.slot(name, isSynced)
    if let known {
      slot = known
      // What is kept already may be set and removed whatever its name.
      if !slot.content.isPresent { try PreferenceLimits.check(slot.name) }
      if !slot.isUsed { _ = use(slot) }
    } else {
      slot = PreferenceSlot(name.canonical, isSynced: isSynced)
      try PreferenceLimits.check(slot.name)
      _ = use(slot)
    }
    guard !slot.isContested else {
      throw GameDataError(.misuse, "\"\(name.prefix(80))\" is used as a preference of this device and as a synced one: take two names")
    }
    if case .foreign = slot.content {
      throw GameDataError(
        .misuse, "\"\(name.prefix(80))\" holds what another program kept by another rule: take another name for the preference")
    }
    guard !content.isSame(as: slot.content) else { return .unchanged }
    let (size, before) = (content.size, slot.content.size)
    try PreferenceLimits.check(size: size, of: name, isSynced: isSynced)
    let change = (content.isPresent ? 1 : 0) - (slot.content.isPresent ? 1 : 0)
    if change > 0 || size > before {
      try PreferenceLimits.check(count: present + change, adds: change > 0, bytes: bytes - before + size)
    }
    if !emits {
      let watchers = PreferenceWatchers(value: known == nil ? othersWatch : slot.watch, names: change != 0 ? namesWatch : nil)
      if !watchers.isEmpty { return .watched(watchers) }
    }
    if known == nil { add(slot) }
    put(content, in: slot)
    enqueue(slot)
    guard !isScheduled else { return .set(schedules: false) }
    isScheduled = true
    return .set(schedules: true)
  }

  /// Replaces a number by another where that needs no checks, because it takes as much, is known to be allowed, its commit is seen to, and
  /// nobody has to be told. False, and nothing done, where it takes more than that.
  mutating func replace(_ scalar: PreferenceScalar, _ name: String, _ isSynced: Bool) -> Bool {
    guard let slot = index.slot(name, isSynced) else { return false }
    // A dirty one was set since the last commit: its key is used, its name is good, and its commit is on the way.
    guard slot.isDirty, isScheduled, !slot.isContested, !isClosed, case .scalar(let old) = slot.content else { return false }
    guard old.isAsLarge(as: scalar), !old.isSame(as: scalar), slot.watch?.isTracked != true else { return false }
    slot.content = .scalar(scalar)
    slot.version &+= 1
    slot.refusedType = nil
    return true
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

  /// A value on its way into the store.
  struct Change: Sendable {
    let slot: PreferenceSlot
    let content: PreferenceContent
    /// What the store has of it, for local ones; nil where a commit before this one is still to tell.
    let stored: PreferenceContent?
  }

  /// Whether the store lacks something, or may come to lack it again because a commit fails.
  var isUnsettled: Bool { !dirty.isEmpty || commitsUnderWay > 0 }
  var hasUncommitted: Bool { !dirty.isEmpty }

  /// Everything that was set and not committed, as it is now.
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

  /// What was taken is in the store, or was refused: of that nothing new is stored.
  mutating func committed(_ changes: [(change: Change, stored: PreferenceContent?)]) {
    commitsUnderWay -= 1
    for (change, stored) in changes {
      change.slot.inFlight -= 1
      if let stored { change.slot.stored = stored }
    }
  }

  /// What was taken is not in the store, and waits for the next commit, unless it was set again since.
  mutating func failed(_ changes: [Change]) {
    commitsUnderWay -= 1
    for change in changes {
      change.slot.inFlight -= 1
      enqueue(change.slot)
    }
    hasFailed = hasFailed || !changes.isEmpty
  }

  // MARK: Other devices

  /// Who has to be told if the cell's state is news here; nil if it isn't, or if what this device has set since comes after it.
  ///
  /// - Parameter reading: The number of the reading that gave the state; a greater one is of a later time.
  mutating func update(_ name: String, _ state: CellState?, reading: UInt64) -> PreferenceWatchers? {
    let content = Self.content(of: state)
    let slot = slotForUpdate(name)
    guard reading > slot.reading else { return nil }
    // Even if it is no news: an older reading that is still about to be shown must not be shown any more.
    slot.reading = reading
    guard !slot.isDirty, slot.inFlight == 0, !isShown(content, in: slot) else { return nil }
    return PreferenceWatchers(value: slot.watch, names: content.isPresent != slot.content.isPresent ? namesWatch : nil)
  }

  private func isShown(_ content: PreferenceContent, in slot: PreferenceSlot) -> Bool {
    switch (content, slot.content) {
    case (.foreign, .foreign): return true
    case (.bytes(let data), .scalar(let scalar)):
      // What can't be encoded was never committed either.
      return (try? scalar.encoded()) == data
    default: return content.isSame(as: slot.content)
    }
  }

  /// A place of its own for what the store has a cell of. Who looked before it had one is told by the watch of all such names.
  private mutating func slotForUpdate(_ name: String) -> PreferenceSlot {
    if let slot = index.slot(name, true) { return slot }
    let slot = PreferenceSlot(name, isSynced: true)
    slot.watch = othersWatch
    add(slot)
    return slot
  }

  /// Shows the cell's state, unless something was set meanwhile, or the store was read again; whether it did.
  mutating func receive(_ name: String, _ state: CellState?, reading: UInt64) -> Bool {
    guard let slot = index.slot(name, true), slot.reading == reading, !slot.isDirty, slot.inFlight == 0 else { return false }
    put(Self.content(of: state), in: slot)
    return true
  }
}
