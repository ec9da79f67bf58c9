public import Foundation
public import KeepsakeArchive
public import KeepsakeReplication

/// Changes that are committed together: saved games, progress, scores and wallet operations, all of them or none.
///
/// ```swift
/// try game.checkpoint { checkpoint in
///   try checkpoint.save(world, to: .main)
///   try checkpoint.record(world.level, for: .level)
///   try checkpoint.spend(50, .gems, for: "sword")
/// }
/// ```
///
/// Other devices see all of it or nothing, too.
public struct Checkpoint: ~Copyable {
  /// The most saves in a checkpoint, which is held in memory until it is written.
  public static let maximumSaves = 64

  /// The most scores in a checkpoint.
  public static let maximumScores = 1_000

  private let core: GameCore
  private let boards: HighScores
  var saves: [SaveDraft] = []
  var cells: [CellDraft] = []
  var scores: [ScoreDraft] = []
  var operations: [WalletOperation] = []

  init(core: GameCore, scores: HighScores) {
    self.core = core
    boards = scores
  }

  /// Adds a save.
  ///
  /// - Parameters:
  ///   - value: The value to save.
  ///   - slot: The slot. A checkpoint can save each slot once.
  ///   - metadata: What lists show for this version.
  /// - Throws: `ArchiveError` if the value can't be encoded; `GameDataError` with `misuse` for a second save of a slot,
  ///   or `tooLarge` for more than `maximumSaves`.
  public mutating func save<Value: Archivable>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata = SaveMetadata()
  ) throws {
    guard !saves.contains(where: { $0.slot == slot.name }) else {
      throw GameDataError(.misuse, "a checkpoint saves a slot once; \"\(slot.name)\" came twice")
    }
    guard saves.count < Self.maximumSaves else {
      throw GameDataError(.tooLarge, "a checkpoint saves \(Self.maximumSaves) slots at most")
    }
    saves.append(try SaveSlots(core: core).save(value, to: slot, metadata))
  }

  /// As `ProgressStore.record`.
  public mutating func record<Value>(_ value: Value, for key: ProgressKey<Value>) throws {
    cells.append(try key.draft(.record, value))
  }

  /// As `ProgressStore.set`.
  public mutating func set<Value>(_ value: Value, for key: ProgressKey<Value>) throws {
    cells.append(try key.draft(.set, value))
  }

  /// As `ProgressStore.add`.
  public mutating func add(_ amount: Int, to key: ProgressKey<Int>) throws { cells.append(try key.draft(.add, amount)) }

  /// The same for a counter that is nil until something is counted.
  public mutating func add(_ amount: Int, to key: ProgressKey<Int?>) throws { cells.append(try key.draft(.add, amount)) }

  /// As `ProgressStore.insert`.
  public mutating func insert<Element: ProgressValue>(_ element: Element, into key: ProgressKey<Set<Element>>) throws {
    cells.append(try key.draft(.insert, [element]))
  }

  /// As `ProgressStore.remove`.
  public mutating func remove<Element: ProgressValue>(_ element: Element, from key: ProgressKey<Set<Element>>) throws {
    cells.append(try key.removing([element]))
  }

  /// As `HighScores.submit`, with the rest of the checkpoint.
  @discardableResult
  public mutating func submit(_ value: some ScoreNumber, to board: Board, player: String = "", date: Date? = nil) throws -> Score {
    try add(boards.draft(value, board, player, date, nil))
  }

  /// The same, with a context.
  @discardableResult
  public mutating func submit<Context: Archivable>(
    _ value: some ScoreNumber, to board: Board, player: String = "", date: Date? = nil, context: Context
  ) throws -> Score {
    try add(boards.draft(value, board, player, date, Archive.encode(context)))
  }

  private mutating func add(_ draft: ScoreDraft) throws -> Score {
    guard scores.count < Self.maximumScores else {
      throw GameDataError(.tooLarge, "a checkpoint submits \(Self.maximumScores) scores at most")
    }
    scores.append(draft)
    return Score(draft.entry)
  }

  /// As `WalletStore.earn`, with the rest of the checkpoint.
  @discardableResult
  public mutating func earn(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil
  ) throws -> OperationID {
    try add(WalletStore.operation(.earn, amount, currency, reason, id, [], in: core))
  }

  /// As `WalletStore.spend`; if it can't be covered, nothing of the checkpoint happens and its `Pending` says so.
  @discardableResult
  public mutating func spend(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil, goods: [Goods] = []
  ) throws -> OperationID {
    try add(WalletStore.operation(.spend, amount, currency, reason, id, goods, in: core))
  }

  /// As `WalletStore.claim`.
  @discardableResult
  public mutating func claim(
    _ amount: Int, _ currency: Currency, key: String, for reason: String, goods: [Goods] = []
  ) throws -> OperationID {
    try add(WalletStore.operation(.claim(key: key), amount, currency, reason, nil, goods, in: core))
  }

  private mutating func add(_ operation: WalletOperation) throws -> OperationID {
    operations.append(operation)
    return operation.id
  }
}

// Values in dictionaries, as in `ProgressStore`.
extension Checkpoint {
  /// As `ProgressStore.record(_:at:for:)`.
  public mutating func record<Key: ProgressValue, Entry>(_ value: Entry, at entry: Key, for key: ProgressKey<[Key: Entry]>) throws {
    cells.append(try key.draft(.record, [entry: value]))
  }

  /// As `ProgressStore.set(_:at:for:)`.
  public mutating func set<Key: ProgressValue, Entry>(_ value: Entry, at entry: Key, for key: ProgressKey<[Key: Entry]>) throws {
    cells.append(try key.draft(.set, [entry: value]))
  }

  /// As `ProgressStore.add(_:at:to:)`.
  public mutating func add<Key: ProgressValue>(_ amount: Int, at entry: Key, to key: ProgressKey<[Key: Int]>) throws {
    cells.append(try key.draft(.add, [entry: amount]))
  }

  /// As `ProgressStore.insert(_:at:into:)`.
  public mutating func insert<Key: ProgressValue, Element: ProgressValue>(
    _ element: Element, at entry: Key, into key: ProgressKey<[Key: Set<Element>]>
  ) throws {
    cells.append(try key.draft(.insert, [entry: [element]]))
  }

  /// As `ProgressStore.remove(_:at:from:)`.
  public mutating func remove<Key: ProgressValue, Element: ProgressValue>(
    _ element: Element, at entry: Key, from key: ProgressKey<[Key: Set<Element>]>
  ) throws {
    cells.append(try key.removing([element], at: entry))
  }
}
