/// What the names of one kind have to be: the one rule for all names, with one wording of what is wrong.
///
/// The limits are those of formats and protocols, which is why they differ. Names of files and folders have to be valid
/// on every platform besides, which the types for those check.
package struct NameRule: Sendable {
  /// The control characters that a name may have.
  package enum ControlCharacters: Sendable {
    /// Any: such names were always accepted, and stores and clouds have them.
    case allowed
    /// None of ASCII's.
    case refused
    /// None of Unicode's: the name is shown to people of whom another device knows nothing.
    case refusedInUnicode
  }

  /// The kind of name, with its article: "a slot's name".
  package let kind: String
  /// The greatest length, in bytes of UTF-8.
  package let maximumBytes: Int
  let canBeEmpty: Bool
  let controlCharacters: ControlCharacters

  package init(
    _ kind: String, maximumBytes: Int, canBeEmpty: Bool = false, controlCharacters: ControlCharacters = .refused
  ) {
    (self.kind, self.maximumBytes) = (kind, maximumBytes)
    (self.canBeEmpty, self.controlCharacters) = (canBeEmpty, controlCharacters)
  }

  package static let slot = NameRule("a slot's name", maximumBytes: ExchangeRules.maximumSlotBytes)
  /// Tracked files share their keys with slots, and a synced one's has a prefix.
  package static let trackedFile = NameRule(
    "a tracked file's name", maximumBytes: ExchangeRules.maximumSlotBytes - SlotKey.file("").text.utf8.count)
  package static let localFile = NameRule("a local file's name", maximumBytes: ExchangeRules.maximumSlotBytes)
  package static let value = NameRule("a value's name", maximumBytes: ExchangeRules.maximumKeyBytes)
  package static let preference = NameRule("a preference's name", maximumBytes: ExchangeRules.maximumKeyBytes)
  package static let collection = NameRule("a collection's name", maximumBytes: ExchangeRules.maximumCollectionBytes)
  package static let board = NameRule("a board's name", maximumBytes: ScoreEntry.maximumBoardBytes)
  package static let player = NameRule(
    "a player's name", maximumBytes: ScoreEntry.maximumPlayerBytes, canBeEmpty: true)
  package static let currency = wallet("a currency's name")
  package static let good = wallet("a good's name")
  package static let claim = wallet("a claim's key")
  package static let reason = NameRule(
    "the reason of a wallet operation", maximumBytes: Wallet.maximumReasonBytes, canBeEmpty: true,
    controlCharacters: .allowed)
  package static let device = NameRule(
    "a device's name", maximumBytes: 200, canBeEmpty: true, controlCharacters: .refusedInUnicode)

  private static func wallet(_ kind: String) -> NameRule {
    NameRule(kind, maximumBytes: Wallet.maximumNameBytes, controlCharacters: .allowed)
  }

  package func allows(_ name: String) -> Bool { problem(with: name) == nil }

  /// Returns a sentence with the kind of name, its limit, and what is wrong with this one; nil if it is allowed.
  package func objection(to name: String) -> String? {
    problem(with: name).map { problem in
      let least = canBeEmpty ? "at most" : "1 to"
      let plain = controlCharacters == .allowed ? "" : " and no control characters"
      return "\(kind) must have \(least) \(maximumBytes) bytes\(plain): \(Self.shown(name)) \(problem)"
    }
  }

  private func problem(with name: String) -> String? {
    if name.isEmpty { return canBeEmpty ? nil : "is empty" }
    if name.utf8.count > maximumBytes { return "has \(name.utf8.count)" }
    guard let control = name.unicodeScalars.first(where: isRefused) else { return nil }
    let digits = String(control.value, radix: 16, uppercase: true)
    return "has U+\(String(repeating: "0", count: 4 - digits.count))\(digits)"
  }

  private func isRefused(_ scalar: Unicode.Scalar) -> Bool {
    switch controlCharacters {
    case .allowed: false
    case .refused: scalar.value < 0x20 || scalar.value == 0x7F
    case .refusedInUnicode: scalar.properties.generalCategory == .control
    }
  }

  /// Returns a name as messages show it: in quotation marks, shortened, and with control characters as escapes.
  package static func shown(_ name: String) -> String {
    var text = ""
    for (count, scalar) in name.unicodeScalars.enumerated() {
      guard count < 40 else {
        text += "..."
        break
      }
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse:
        text += "\\u{\(String(scalar.value, radix: 16))}"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return "\"\(text)\""
  }
}
