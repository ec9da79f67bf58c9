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
  /// The maximum number of saves in a checkpoint, which is held in memory until it is written.
  public static let maximumSaves = 64

  /// The maximum number of scores in a checkpoint.
  public static let maximumScores = 1_000

  /// The maximum number of wallet operations in a checkpoint, which count together or not at all. Claims are committed
  /// with the rest, but the bank decides each by its key.
  public static let maximumOperations = KeepsakeReplication.Wallet.maximumGroup

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
  ///   - slot: The slot. A checkpoint can save each slot only once.
  ///   - metadata: What lists show for this version.
  /// - Throws: `ArchiveError` if the value can't be encoded; `GameDataError` with `misuse` for a second save of a slot,
  ///   or `tooLarge` for more than `maximumSaves`.
  public mutating func save<Value>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata = SaveMetadata()
  ) throws {
    guard !saves.contains(where: { $0.slot == slot.name }) else {
      throw GameDataError(.misuse, "a checkpoint can save a slot only once, but \"\(slot.name)\" was saved twice")
    }
    guard saves.count < Self.maximumSaves else {
      throw GameDataError(.tooLarge, "a checkpoint can save at most \(Self.maximumSaves) slots")
    }
    saves.append(try SaveSlots(core: core).save(value, to: slot, metadata))
  }

  /// Records a value, as `ProgressStore.record` does.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func record<Value>(_ value: Value, for key: ProgressKey<Value>) throws {
    cells.append(try key.draft(.record, value))
  }

  /// Sets a value, as `ProgressStore.set` does.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func set<Value>(_ value: Value, for key: ProgressKey<Value>) throws {
    cells.append(try key.draft(.set, value))
  }

  /// Adds to a counter, as `ProgressStore.add` does.
  ///
  /// - Parameters:
  ///   - amount: The difference; may be negative.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func add(_ amount: Int, to key: ProgressKey<Int>) throws { cells.append(try key.draft(.add, amount)) }

  /// Adds to a counter that is nil until something is counted.
  ///
  /// - Parameters:
  ///   - amount: The difference; may be negative.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func add(_ amount: Int, to key: ProgressKey<Int?>) throws {
    cells.append(try key.draft(.add, amount))
  }

  /// Inserts an element, as `ProgressStore.insert` does.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func insert<Element: ProgressValue>(_ element: Element, into key: ProgressKey<Set<Element>>) throws {
    cells.append(try key.draft(.insert, [element]))
  }

  /// Removes an element, as `ProgressStore.remove` does.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func remove<Element: ProgressValue>(_ element: Element, from key: ProgressKey<Set<Element>>) throws {
    cells.append(try key.removing([element]))
  }

  /// Adds a score to a board, as `HighScores.submit` does, together with the rest of the checkpoint.
  ///
  /// - Parameters:
  ///   - value: The score.
  ///   - board: The board.
  ///   - player: Who scored; empty if it doesn't matter.
  ///   - date: When it was scored; now if nil.
  /// - Returns: The score as the board will show it.
  /// - Throws: `GameDataError` with `misuse` for NaN and infinities, for an invalid name or date, or for a board that
  ///   has another order; with `tooLarge` for more than `maximumScores`; `StoreError` if the board can't be read. The
  ///   checkpoint's handle throws `tooLarge` for a board with too many players.
  @discardableResult
  public mutating func submit(_ value: some ScoreNumber, to board: Board, player: String = "", date: Date? = nil) throws
    -> Score
  {
    try add(boards.draft(value, board, player, date, nil))
  }

  /// Adds a score to a board, with a value that belongs to it.
  ///
  /// - Parameters:
  ///   - value: The score.
  ///   - board: The board.
  ///   - player: Who scored; empty if it doesn't matter.
  ///   - date: When it was scored; now if nil.
  ///   - context: The value, at most `Score.maximumContextBytes` as an archive.
  /// - Returns: The score as the board will show it.
  /// - Throws: As `submit(_:to:player:date:)`; `GameDataError` with `tooLarge` for a larger context; `ArchiveError`, or
  ///   the type's own error, if the context can't be encoded.
  @discardableResult
  public mutating func submit<Context: Archivable>(
    _ value: some ScoreNumber, to board: Board, player: String = "", date: Date? = nil, context: Context
  ) throws -> Score {
    try add(boards.draft(value, board, player, date, Archive.encode(context)))
  }

  private mutating func add(_ draft: ScoreDraft) throws -> Score {
    guard scores.count < Self.maximumScores else {
      throw GameDataError(.tooLarge, "a checkpoint can submit at most \(Self.maximumScores) scores")
    }
    scores.append(draft)
    return Score(draft.entry)
  }

  /// Adds to the player's money, as `WalletStore.earn` does, together with the rest of the checkpoint.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - reason: A text for the ledger.
  ///   - id: The operation's identifier, to make a retry safe; a new one if nil.
  /// - Returns: The operation's identifier.
  /// - Throws: `GameDataError` with `misuse` for an invalid amount, name or reason; with `notAllowed` for a currency
  ///   that only servers make; with `tooLarge` for more than `maximumOperations`. The checkpoint's handle throws
  ///   `idReused`, `notAllowed` if only the cloud declares that, and `tooLarge` if the player's totals would exceed
  ///   their maximum.
  @discardableResult
  public mutating func earn(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil
  ) throws -> OperationID {
    try add(WalletStore.operation(.earn, amount, currency, reason, id, [], gaining: currency, in: core))
  }

  /// Spends money, as `WalletStore.spend` does. If there isn't enough, nothing of the checkpoint is committed, and its
  /// `Pending` throws the error.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - reason: A text for the ledger.
  ///   - id: The operation's identifier, to make a retry safe; a new one if nil.
  ///   - goods: What the operation grants.
  /// - Returns: The operation's identifier.
  /// - Throws: `GameDataError` with `misuse` for an invalid amount, name, reason or list of goods; with `tooLarge` for
  ///   more than `maximumOperations`. The checkpoint's handle throws `idReused`.
  @discardableResult
  public mutating func spend(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil, goods: [Goods] = []
  ) throws -> OperationID {
    try add(WalletStore.operation(.spend, amount, currency, reason, id, goods, in: core))
  }

  /// Exchanges money for another currency, as `WalletStore.convert` does. If there isn't enough, nothing of the
  /// checkpoint is committed, and its `Pending` throws the error.
  ///
  /// - Parameters:
  ///   - amount: What is spent, at least 1.
  ///   - currency: Its currency.
  ///   - received: What is added, at least 1.
  ///   - other: Its currency, another one.
  ///   - reason: A text for the ledger.
  ///   - id: The operation's identifier, to make a retry safe; a new one if nil.
  /// - Returns: The operation's identifier.
  /// - Throws: `GameDataError` with `misuse` for an invalid amount, name or reason; with `notAllowed` for a currency
  ///   that only servers make; with `tooLarge` for more than `maximumOperations`. The checkpoint's handle throws
  ///   `idReused`, and `notAllowed` if only the cloud declares that.
  @discardableResult
  public mutating func convert(
    _ amount: Int, _ currency: Currency, to received: Int, _ other: Currency, for reason: String,
    id: OperationID? = nil
  ) throws -> OperationID {
    let kind = WalletOperation.Kind.convert(to: other.name, received: Int64(received))
    return try add(WalletStore.operation(kind, amount, currency, reason, id, [], gaining: other, in: core))
  }

  /// Requests a payment from the bank, as `WalletStore.claim` does. The request is committed with the rest of the
  /// checkpoint, which doesn't depend on whether it is paid.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - key: Identifies the payment: each player gets it once.
  ///   - reason: A text for the ledger.
  ///   - goods: What the operation grants when it is paid.
  /// - Returns: The operation's identifier; no operation has it if the key was claimed on this device before.
  /// - Throws: `GameDataError` with `misuse` for an invalid amount, name, key, reason or list of goods; with
  ///   `notAllowed` for a currency that only servers make; with `tooLarge` for more than `maximumOperations`. The
  ///   checkpoint's handle throws `notAllowed` if only the cloud declares that.
  @discardableResult
  public mutating func claim(
    _ amount: Int, _ currency: Currency, key: String, for reason: String, goods: [Goods] = []
  ) throws -> OperationID {
    let kind = WalletOperation.Kind.claim(key: key.canonical)
    return try add(WalletStore.operation(kind, amount, currency, reason, nil, goods, gaining: currency, in: core))
  }

  private mutating func add(_ operation: WalletOperation) throws -> OperationID {
    guard operations.count < Self.maximumOperations else {
      throw GameDataError(
        .tooLarge, "a checkpoint can have at most \(Self.maximumOperations) operations of the wallet")
    }
    operations.append(operation)
    return operation.id
  }
}

// Values in dictionaries, as in `ProgressStore`.
extension Checkpoint {
  /// Records a value in a dictionary, as `ProgressStore.record(_:at:for:)` does.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - entry: Its name in the dictionary.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func record<Key: ProgressValue, Entry>(
    _ value: Entry, at entry: Key, for key: ProgressKey<[Key: Entry]>
  ) throws {
    cells.append(try key.draft(.record, [entry: value]))
  }

  /// Sets a value in a dictionary, as `ProgressStore.set(_:at:for:)` does.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - entry: Its name in the dictionary.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func set<Key: ProgressValue, Entry>(_ value: Entry, at entry: Key, for key: ProgressKey<[Key: Entry]>)
    throws
  {
    cells.append(try key.draft(.set, [entry: value]))
  }

  /// Adds to a count in a dictionary, as `ProgressStore.add(_:at:to:)` does.
  ///
  /// - Parameters:
  ///   - amount: The difference; may be negative.
  ///   - entry: Its name in the dictionary.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func add<Key: ProgressValue>(_ amount: Int, at entry: Key, to key: ProgressKey<[Key: Int]>) throws {
    cells.append(try key.draft(.add, [entry: amount]))
  }

  /// Inserts an element into a set in a dictionary, as `ProgressStore.insert(_:at:into:)` does.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - entry: The set's name in the dictionary.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func insert<Key: ProgressValue, Element: ProgressValue>(
    _ element: Element, at entry: Key, into key: ProgressKey<[Key: Set<Element>]>
  ) throws {
    cells.append(try key.draft(.insert, [entry: [element]]))
  }

  /// Removes an element from a set in a dictionary, as `ProgressStore.remove(_:at:from:)` does.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - entry: The set's name in the dictionary.
  ///   - key: The key.
  /// - Throws: `GameDataError` with `misuse` if the key's rule doesn't support this. `GameData.checkpoint` throws for
  ///   an invalid name or value.
  public mutating func remove<Key: ProgressValue, Element: ProgressValue>(
    _ element: Element, at entry: Key, from key: ProgressKey<[Key: Set<Element>]>
  ) throws {
    cells.append(try key.removing([element], at: entry))
  }
}
