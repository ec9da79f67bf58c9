/// A rule that doesn't hold in a state.
package struct CheckedViolation: Error, Hashable, Sendable {
  package enum Rule: String, Hashable, Sendable, CaseIterable {
    /// What the bank and the chains hold is what was counted, and nobody holds less than nothing.
    case money
    /// A spend is declined only if the balance, less the spends that wait before it, didn't cover it.
    case declined
    /// Nothing is decided twice, and nothing under an id that another operation has.
    case decidedOnce
    case claimPaidOnce
    /// The operations of a group count together or not at all.
    case groups
    case deviceRights
    /// A bank that was set back grants nothing before all have reported, and then what their statements show.
    case restored
    /// Neither side rejects what the other one sends.
    case exchange
    /// When every message has arrived, exchanges stop changing anything.
    case rest
    /// Then nothing is left to report, and nothing waits although nobody else holds the money.
    case nothingLeft
    /// Then every operation in a ledger is decided, and the ledger has the verdict.
    case ledger
    /// Then every device knows the balance and its rights.
    case agreement
    /// Then no money is on a chain that no device has, except of stores that were replaced by others.
    case stranded
    /// Then what a device needs is there if the balance covers it.
    case needs
  }

  package var rule: Rule
  package var text: String

  init(_ rule: Rule, _ text: String) { (self.rule, self.text) = (rule, text) }
}
