public import KeepsakeArchive

/// Money of one run: gold, wood, lives. It is part of the saved game, so loading an older save restores the amounts of
/// that time, and `endGame()` empties it.
///
/// ```swift
/// @Archivable struct World {
///   var purse = Purse()
/// }
/// try world.purse.earn(20, .gold)
/// try world.purse.spend(15, .gold)       // throws if there is less
/// let left = world.purse.endGame()       // [.gold: 5], and the purse is empty
/// ```
///
/// Keep money that must outlive the run or an older save in `GameData.wallet`. Costs one dictionary lookup. If two
/// devices play the same run, the purse belongs to the save that wins the conflict: give the field a merge rule to join
/// purses.
public struct Purse: Sendable, Hashable, Archivable {
  /// The maximum amount of a currency in a purse. The sum of any two amounts fits into 64 bits.
  public static let maximumAmount = Int(clamping: Int64(1) << 60)

  /// The amounts by the names of their currencies; none is zero.
  private var amounts: [String: Int] = [:]

  /// Creates an empty purse.
  public init() {}

  /// The amount of a currency; zero if none was ever earned.
  public subscript(currency: Currency) -> Int { amounts[currency.name] ?? 0 }

  /// The currencies in the purse, sorted by name.
  public var currencies: [Currency] { amounts.keys.sorted().map { Currency($0) } }

  /// Adds to the purse.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  /// - Throws: `GameDataError` with `misuse` for an amount below 1, or `tooLarge` if the purse would hold more than
  ///   `maximumAmount`. Nothing has changed then.
  public mutating func earn(_ amount: Int, _ currency: Currency) throws {
    try check(amount)
    let (sum, overflow) = self[currency].addingReportingOverflow(amount)
    guard !overflow, sum <= Self.maximumAmount else {
      throw GameDataError(.tooLarge, "a purse can hold at most \(Self.maximumAmount) \(currency.name)")
    }
    amounts[currency.name] = sum
  }

  /// Takes from the purse.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  /// - Throws: `GameDataError` with `misuse` for an amount below 1, or `insufficient` if there is less. Nothing has
  ///   changed then.
  public mutating func spend(_ amount: Int, _ currency: Currency) throws {
    try check(amount)
    let held = self[currency]
    guard held >= amount else {
      throw GameDataError(
        .insufficient(spendable: Int64(held), balance: Int64(held)), "there are only \(held) \(currency.name) in the purse")
    }
    amounts[currency.name] = held > amount ? held - amount : nil
  }

  /// Empties the purse at the end of a run.
  ///
  /// - Returns: What was in it.
  @discardableResult
  public mutating func endGame() -> [Currency: Int] {
    defer { amounts = [:] }
    return Dictionary(uniqueKeysWithValues: amounts.map { (Currency($0.key), $0.value) })
  }

  private func check(_ amount: Int) throws {
    guard amount > 0 else { throw GameDataError(.misuse, "\(amount) is not a valid amount: it must be at least 1") }
  }

  // MARK: Archivable

  /// Encodes the amounts.
  ///
  /// - Parameter writer: The archive's writer.
  public func encode(to writer: inout ArchiveWriter) throws { try writer.encode(amounts, forKey: "amounts") }

  /// Decodes the amounts.
  ///
  /// - Parameter reader: The archive's reader.
  /// - Throws: `ArchiveError` with `mismatch` for amounts that no purse can have, as in a manipulated save.
  public init(from reader: inout ArchiveReader) throws {
    let saved = try reader.decode([String: Int].self, forKey: "amounts", default: [:])
    for (name, amount) in saved.sorted(by: { $0.key < $1.key }) {
      guard (1...Self.maximumAmount).contains(amount) else {
        throw ArchiveError(.mismatch, "a purse can't hold \(amount) \(name.prefix(80))")
      }
      amounts[name.canonical] = amount
    }
  }
}
