import Testing

/// Waits until something that must happen has happened.
func until(_ what: String, _ condition: () throws -> Bool) async throws {
  let start = ContinuousClock.now
  while try !condition() {
    if ContinuousClock.now - start > .seconds(120) {
      Issue.record("\(what) didn't happen")
      throw CancellationError()
    }
    try await Task.sleep(for: .milliseconds(5))
  }
}
