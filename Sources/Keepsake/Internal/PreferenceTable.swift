import Foundation
import KeepsakeReplication
import KeepsakeStore

/// What memory holds of one preference.
enum PreferenceContent: Sendable {
  case absent
  /// As its row stands in the store; nobody has asked for it yet.
  case kept(KeptPreference)
  /// An archive that wasn't decoded, or not as the type asked for.
  case bytes(Data)
  case scalar(PreferenceScalar)
  /// A value of any other type, and the archive of it.
  case typed(any Sendable, Data)
  /// A cell that another program wrote by another rule.
  case foreign

  /// The archive; nil if there is no value. Throws for a row that is damaged or by other hands.
  func archive() throws -> Data? {
    switch self {
    case .absent, .foreign: nil
    case .kept(let row): try row.bytes()
    case .bytes(let data), .typed(_, let data): data
    case .scalar(let scalar): try scalar.encoded()
    }
  }

  var isPresent: Bool {
    switch self {
    case .absent, .foreign: false
    default: true
    }
  }

  /// Bytes that it takes, roughly. Costs nothing.
  var size: Int {
    switch self {
    case .absent, .foreign: 0
    case .kept(let row): row.size
    case .bytes(let data), .typed(_, let data): data.count
    case .scalar(let scalar): scalar.size + Self.archiveBytes
    }
  }

  /// What an archive takes around a simple value.
  private static let archiveBytes = 64

  /// Whether both are known to be the same without decoding anything; a commit looks closer.
  func isSame(as other: PreferenceContent) -> Bool {
    switch (self, other) {
    case (.absent, .absent): true
    case (.scalar(let left), .scalar(let right)): left.isSame(as: right)
    case (.bytes(let left), .bytes(let right)), (.bytes(let left), .typed(_, let right)), (.typed(_, let left), .bytes(let right)),
      (.typed(_, let left), .typed(_, let right)):
      left == right
    default: false
    }
  }
}

/// One name's place in memory. Unchecked: whoever reads or changes it holds the lock of its table.
final class PreferenceSlot: @unchecked Sendable {
  let name: String
  let isSynced: Bool
  fileprivate(set) var content: PreferenceContent
  /// Rises with each change, so that what was decoded meanwhile isn't put over a newer value.
  fileprivate(set) var version: UInt64 = 0
  /// What the store has: compared with at a commit, so that nothing is written twice. Of no use for synced ones.
  fileprivate var stored: PreferenceContent
  fileprivate(set) var isDirty = false
  /// The newest reading of the store that was looked at for it.
  fileprivate var reading: UInt64 = 0
  /// Commits under way that hold a value of it.
  fileprivate(set) var inFlight = 0
  fileprivate(set) var watch: PreferenceWatch?
  /// A key was used with it since the game began.
  fileprivate(set) var isUsed = false
  /// A key that says otherwise about being synced was used before.
  fileprivate(set) var isContested = false
  /// The type as which the content can't be read, so that it is tried once.
  fileprivate(set) var refusedType: ObjectIdentifier?

  init(_ name: String, isSynced: Bool, content: PreferenceContent = .absent) {
    (self.name, self.isSynced, self.content, stored) = (name, isSynced, content, content)
  }
}

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

  private var local: [String: PreferenceSlot] = [:]
  private var synced: [String: PreferenceSlot] = [:]
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
    local.reserveCapacity(kept.count)
    for row in kept { add(PreferenceSlot(row.name, isSynced: false, content: .kept(row))) }
    for cell in cells { add(PreferenceSlot(cell.key.key, isSynced: true, content: Self.content(of: cell.state))) }
  }

  private mutating func add(_ slot: PreferenceSlot) {
    if slot.isSynced { synced[slot.name] = slot } else { local[slot.name] = slot }
    if slot.content.isPresent { present += 1 }
    bytes += slot.content.size
  }

  /// No bytes stand for a value that was removed.
  static func content(of cell: CellState?) -> PreferenceContent {
    guard let cell else { return .absent }
    guard case .latest(_, .data(let data)) = cell.value else { return .foreign }
    return data.isEmpty ? .absent : .bytes(data)
  }

  private func slot(_ name: String, _ isSynced: Bool) -> PreferenceSlot? { isSynced ? synced[name] : local[name] }

  // MARK: Reading

  var names: [String] {
    Set(local.values.filter(\.content.isPresent).map(\.name)).union(synced.values.filter(\.content.isPresent).map(\.name)).sorted()
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
    if let slot = slot(name, isSynced) {
      found = slot
    } else if (isSynced ? synced.count : local.count) < present + Self.maximumAbsent, PreferenceLimits.isName(name) {
      found = PreferenceSlot(name, isSynced: isSynced)
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
  private func use(_ slot: PreferenceSlot) -> PreferenceObjection? {
    slot.isUsed = true
    guard let other = self.slot(slot.name, !slot.isSynced) else { return nil }
    if other.isUsed {
      slot.isContested = true
      return .contested
    }
    return !slot.content.isPresent && other.content.isPresent ? .keptOtherwise : nil
  }

  /// Keeps what was decoded, if it is still what is there.
  mutating func remember(_ content: PreferenceContent, _ name: String, _ isSynced: Bool, version: UInt64) {
    guard let slot = slot(name, isSynced), slot.version == version, slot.content.isPresent else { return }
    bytes += content.size - slot.content.size
    slot.content = content
  }

  /// Keeps that what is there is no value of a type.
  func refuse(_ type: ObjectIdentifier, _ name: String, _ isSynced: Bool, version: UInt64) {
    guard let slot = slot(name, isSynced), slot.version == version else { return }
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
  /// - Parameter tells: Whether those who watch were told, so that it can be done.
  mutating func set(_ content: PreferenceContent, _ name: String, _ isSynced: Bool, tells: Bool) throws -> Outcome {
    guard !isClosed else { throw GameDataError(.closed, "the game's data is closed: nothing can be set any more") }
    let slot: PreferenceSlot
    if let known = self.slot(name, isSynced) {
      slot = known
      // What is kept already may be set and removed whatever its name.
      if !slot.content.isPresent { try PreferenceLimits.check(name) }
      if !slot.isUsed { _ = use(slot) }
    } else {
      try PreferenceLimits.check(name)
      slot = PreferenceSlot(name, isSynced: isSynced)
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
    if !tells {
      let watchers = watchers(of: slot, presenceChanges: change != 0)
      if !watchers.isEmpty { return .watched(watchers) }
    }
    if self.slot(name, isSynced) == nil { add(slot) }
    put(content, in: slot)
    enqueue(slot)
    guard !isScheduled else { return .set(schedules: false) }
    isScheduled = true
    return .set(schedules: true)
  }

  /// What comes of replacing a simple value by another of its kind.
  enum Replacement {
    case done
    case watched(PreferenceSlot, PreferenceWatch)
    /// It takes more than that.
    case notSo
  }

  /// Replaces a number by another where that needs no checks, because it takes as much, is known to be allowed, and its commit is seen to.
  func replace(_ scalar: PreferenceScalar, _ name: String, _ isSynced: Bool) -> Replacement {
    guard let slot = slot(name, isSynced), canReplace(scalar, in: slot) else { return .notSo }
    if let watch = slot.watch { return .watched(slot, watch) }
    slot.content = .scalar(scalar)
    slot.version &+= 1
    slot.refusedType = nil
    return .done
  }

  /// The same, after those who watch were told.
  func replace(_ scalar: PreferenceScalar, in slot: PreferenceSlot) -> Bool {
    guard canReplace(scalar, in: slot) else { return false }
    slot.content = .scalar(scalar)
    slot.version &+= 1
    slot.refusedType = nil
    return true
  }

  private func canReplace(_ scalar: PreferenceScalar, in slot: PreferenceSlot) -> Bool {
    // A dirty one was set since the last commit: its key is used, its name is good, and its commit is on the way.
    guard slot.isDirty, isScheduled, !slot.isContested, !isClosed, case .scalar(let old) = slot.content else { return false }
    return old.isAsLarge(as: scalar) && !old.isSame(as: scalar)
  }

  private func watchers(of slot: PreferenceSlot, presenceChanges: Bool) -> PreferenceWatchers {
    PreferenceWatchers(
      value: slot.watch ?? (self.slot(slot.name, slot.isSynced) == nil ? othersWatch : nil), names: presenceChanges ? namesWatch : nil)
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
  mutating func news(_ name: String, _ state: CellState?, reading: UInt64) -> PreferenceWatchers? {
    let content = Self.content(of: state)
    let slot = placeForNews(name)
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
  private mutating func placeForNews(_ name: String) -> PreferenceSlot {
    if let slot = synced[name] { return slot }
    let slot = PreferenceSlot(name, isSynced: true)
    slot.watch = othersWatch
    add(slot)
    return slot
  }

  /// Shows the cell's state, unless something was set meanwhile, or the store was read again; whether it did.
  mutating func receive(_ name: String, _ state: CellState?, reading: UInt64) -> Bool {
    guard let slot = synced[name], slot.reading == reading, !slot.isDirty, slot.inFlight == 0 else { return false }
    put(Self.content(of: state), in: slot)
    return true
  }
}
