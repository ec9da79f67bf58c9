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
/// Keep money that must outlive the run or an older save in `GameData.wallet`. Costs one dictionary lookup.
///
/// If two devices play the same run, a purse without a rule is that of the device that changed it. To keep what was
/// earned and spent on both, join them: `@Merge(combining: Purse.joined) var purse = Purse()`.
public struct Purse: Sendable, Hashable, Archivable {
  /// The maximum amount of a currency in a purse. The sum of any two amounts fits into 64 bits.
  public static let maximumAmount = Int(clamping: Int64(1) << 60)

  /// The amounts by the names of their currencies; none is zero.
  private var amounts: [String: Int] = [:]

  /// Creates an empty purse.
  public init() {}

  /// The amount of a currency; zero if none was ever earned.
  ///
  /// - Parameter currency: The currency.
  /// - Returns: The amount, from 0 to `maximumAmount`.
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
        .insufficient(spendable: Int64(held), total: Int64(held), held: []),
        "there are only \(held) \(currency.name) in the purse")
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

  /// Joins the purses of two devices that played the same run. Use it as a rule: `@Merge(combining: Purse.joined)`.
  ///
  /// What was earned and spent on both counts: with 20 gold before, 25 here and 15 there make 20. Nothing is left of a
  /// currency of which the devices together spent more than there was, and no amount exceeds `maximumAmount`. Without
  /// an ancestor, which shows what each device added, it takes the greater amount of each currency.
  ///
  /// - Parameters:
  ///   - mine: The purse of this side.
  ///   - theirs: The purse of the other side.
  ///   - ancestor: The purse that both sides continued from; nil if it isn't known.
  /// - Returns: The joined purse.
  public static func joined(_ mine: Purse, _ theirs: Purse, _ ancestor: Purse?) -> Purse {
    var joined = Purse()
    for name in Set(mine.amounts.keys).union(theirs.amounts.keys) {
      let (here, there) = (mine.amounts[name] ?? 0, theirs.amounts[name] ?? 0)
      let sum = ancestor.map { here + there - ($0.amounts[name] ?? 0) } ?? max(here, there)
      if sum > 0 { joined.amounts[name] = min(sum, maximumAmount) }
    }
    return joined
  }

  private func check(_ amount: Int) throws {
    guard amount > 0 else { throw GameDataError(.misuse, "\(amount) is not a valid amount: it must be at least 1") }
  }

  // MARK: Archivable

  /// Encodes the amounts.
  ///
  /// - Parameter writer: The archive's writer.
  /// - Throws: `ArchiveError` with `limit`.
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
