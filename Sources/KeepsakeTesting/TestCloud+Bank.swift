public import Keepsake
public import KeepsakeReplication

// What the game's own servers order of the player's bank.
extension TestCloud {
  /// The currencies that no device can earn, as the server's `--authoritative`.
  public var serverOnly: Set<Currency> {
    get { Set(memory.authoritative.map { Currency($0) }) }
    set { memory.authoritative = Set(newValue.map(\.name)) }
  }

  /// Grants money and goods, as a server of the game does. Devices learn of it when they sync.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - reason: A text for the ledger.
  ///   - id: The order's identifier, which counts once; a new one if nil.
  ///   - goods: What the player receives.
  /// - Returns: The order's identifier.
  /// - Throws: `GameDataError` with `misuse`, `idReused` or `tooLarge`.
  @discardableResult
  public func grant(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil, goods: [Goods] = []
  ) throws -> OperationID {
    try order(.grant, amount, currency, reason, id, goods)
  }

  /// Charges money and takes goods, as a server of the game does. What the player doesn't have is owed.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - reason: A text for the ledger.
  ///   - id: The order's identifier, which counts once; a new one if nil.
  ///   - goods: What the player loses.
  /// - Returns: The order's identifier.
  /// - Throws: `GameDataError` with `misuse`, `idReused` or `tooLarge`.
  @discardableResult
  public func charge(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil, goods: [Goods] = []
  ) throws -> OperationID {
    try order(.charge, amount, currency, reason, id, goods)
  }

  /// Takes a purchase back, as a server of the game does: the money returns, and the goods are gone. Repeating it
  /// changes nothing.
  ///
  /// - Parameters:
  ///   - purchase: The purchase's identifier. The cloud must have counted it.
  ///   - reason: A text for the ledger.
  /// - Throws: `GameDataError` with `missing` for a purchase that the cloud doesn't know, with `misuse` for an
  ///   operation that isn't a purchase or wasn't charged, or with `tooLarge`.
  public func refund(_ purchase: OperationID, for reason: String) throws {
    try perform(BankOrder(refunding: purchase, reason: reason, madeAtMilliseconds: memory.nowMilliseconds))
  }

  private func order(
    _ kind: BankOrder.Kind, _ amount: Int, _ currency: Currency, _ reason: String, _ id: OperationID?, _ goods: [Goods]
  ) throws -> OperationID {
    var random = SystemRandomNumberGenerator()
    let order = BankOrder(
      id: id ?? OperationID(using: &random), kind: kind, currency: currency.name, amount: Int64(amount),
      reason: reason, goods: goods.map(\.name), madeAtMilliseconds: memory.nowMilliseconds)
    try perform(order)
    return order.id
  }

  private func perform(_ order: BankOrder) throws {
    do {
      _ = try memory.perform(order)
    } catch let error as BankOrderError {
      let code: GameDataError.Code =
        switch error {
        case .idReused(let id): .idReused(id)
        case .tooMuch: .tooLarge
        case .unknownPurchase, .detailsNotKept, .playerMoved: .missing
        case .invalid, .notCharged, .notPurchase: .misuse
        }
      throw GameDataError(code, error.description)
    }
  }
}
