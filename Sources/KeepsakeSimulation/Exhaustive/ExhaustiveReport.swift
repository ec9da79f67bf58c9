/// What a run of the checker found.
package struct ExhaustiveReport: Hashable, Sendable {
  package var start: ExhaustiveStart
  /// Different states, with the start.
  package var states = 0
  /// Steps that led to them, or to a state that was known.
  package var transitions = 0
  /// The most steps from the start of the states whose next steps were begun to be made; all states with fewer were
  /// visited.
  package var depth = 0
  /// Whether there is no state that wasn't visited, within the options.
  package var isExhausted = false
  package var failure: Failure?

  package struct Failure: Hashable, Sendable {
    package var violation: CheckedViolation
    /// The shortest way from the start, step by step, each followed by the state that it led to.
    package var trace: [String]
    /// The number of steps.
    package var steps: Int
  }

  package init(start: ExhaustiveStart) { self.start = start }
}
