/// What a game can get wrong about a cell.
package enum CellError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The cell already holds a value of another rule.
  case ruleMismatch(CellKey, holds: String, asked: String)
  /// The cell holds a value of a rule that this program doesn't know.
  case laterRule(CellKey, String)
  /// Not-a-number can't be ordered.
  case notANumber(CellKey)
  /// A count would exceed 64 bits.
  case overflow(CellKey)
  /// Only a cell as a whole has generations, and can hold a best score.
  case notInside(CellKey, String)
  /// A reset before the first catch-up with the cloud would rank below resets that this store hasn't seen.
  case resetBeforeCatchUp(CellKey)

  package var description: String {
    /// Such as `progress "level"`, because a game knows no paths of cells.
    func shown(_ key: CellKey) -> String { "\(key.collection) \"\(key.key.prefix(80))\"" }
    return switch self {
    case .ruleMismatch(let key, let holds, let asked):
      "\(shown(key)) holds a value of the rule \(holds), not \(asked): a key never changes its rule, use a new key"
    case .laterRule(let key, let rule):
      """
      \(shown(key)) holds a value of the rule \(rule), which this program doesn't know: a newer release wrote it, and \
      only a newer release can change it
      """
    case .notANumber(let key): "\(shown(key)) can't hold not-a-number"
    case .overflow(let key): "\(shown(key)) can't count any further"
    case .notInside(let key, let what): "\(what) is for a whole key, not for a value within \(shown(key))"
    case .resetBeforeCatchUp(let key):
      "\(shown(key)) can't be reset before this store has caught up with its cloud once"
    }
  }
}
