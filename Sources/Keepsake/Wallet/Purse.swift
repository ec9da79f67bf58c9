public import KeepsakeArchive

/// Money of one run: gold, wood, lives. It stands in the saved game, so that loading an older save brings back what was
/// there then, and `endGame()` lets go of it.
///
///     @Archivable struct World {
///       var purse = Purse()
///     }
///     try world.purse.earn(20, .gold)
///     try world.purse.spend(15, .gold)            // throws if there is less
///     let left = world.purse.endGame()            // [.gold: 5], and the purse is empty
///
/// What has to outlive the run, and an older save, belongs into `GameData.wallet`. Costs a look into a dictionary. Where two devices
/// played the same run, the purse goes with the save that stands: mark the field with a rule of your own to join them.
public struct Purse: Sendable, Hashable, Archivable {
  /// The most that a purse holds of a currency: sums of any two amounts stay within 64 bits.
  public static let maximumAmount = Int(clamping: Int64(1) << 60)

  /// By the names of the currencies; none is zero.
  private var amounts: [String: Int] = [:]

  /// Makes an empty purse.
  public init() {}

  /// How much there is; zero for a currency that was never earned.
  public subscript(currency: Currency) -> Int { amounts[currency.name] ?? 0 }

  /// The currencies of which there is something, sorted by name.
  public var currencies: [Currency] { amounts.keys.sorted().map { Currency($0) } }

  /// Adds to the purse. Throws `GameDataError`: `misuse` unless the amount is at least 1, `tooLarge` if the purse would hold more than
  /// `maximumAmount`; nothing has changed then.
  public mutating func earn(_ amount: Int, _ currency: Currency) throws {
    try check(amount)
    let (sum, overflow) = self[currency].addingReportingOverflow(amount)
    guard !overflow, sum <= Self.maximumAmount else {
      throw GameDataError(.tooLarge, "a purse holds \(Self.maximumAmount) \(currency.name) at most")
    }
    amounts[currency.name] = sum
  }

  /// Takes from the purse. Throws `GameDataError`: `misuse` unless the amount is at least 1, `insufficient` if there is less; nothing has
  /// changed then.
  public mutating func spend(_ amount: Int, _ currency: Currency) throws {
    try check(amount)
    let held = self[currency]
    guard held >= amount else {
      throw GameDataError(
        .insufficient(spendable: Int64(held), balance: Int64(held)), "there are only \(held) \(currency.name) in the purse")
    }
    amounts[currency.name] = held > amount ? held - amount : nil
  }

  /// The run is over: empties the purse, and gives what was in it.
  @discardableResult
  public mutating func endGame() -> [Currency: Int] {
    defer { amounts = [:] }
    return Dictionary(uniqueKeysWithValues: amounts.map { (Currency($0.key), $0.value) })
  }

  private func check(_ amount: Int) throws {
    guard amount > 0 else { throw GameDataError(.misuse, "\(amount) is no amount: it has to be at least 1") }
  }

  // MARK: Archivable

  public func encode(to writer: inout ArchiveWriter) throws { try writer.encode(amounts, forKey: "amounts") }

  /// Throws `ArchiveError` with `mismatch` for amounts that no purse can have, as somebody may have written them with an editor.
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
