extension GameCore {
  /// Fetches everything from the cloud. Throws the reason if it can't, or `timedOut` after the limit; a fetch that has
  /// begun continues.
  func fetchChanges(within limit: Duration) async throws { try await ask(within: limit, cloud.fetchChanges) }

  /// Runs a request to the cloud. Throws the reason if it fails, or `timedOut` after the limit.
  func ask<Answer: Sendable>(
    within limit: Duration, _ body: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    // On a busy machine, the limit might pass before the request finds out.
    guard !store.isClosed else { throw GameDataError.closed }
    let (outcomes, outcome) = AsyncStream<Result<Answer, any Error>>.makeStream()
    // Not a task group, which waits for its children: the first registration with a server that never responds doesn't
    // react to cancellation.
    let tasks = [
      Task {
        do {
          outcome.yield(.success(try await body()))
        } catch {
          outcome.yield(.failure(error))
        }
      },
      Task { [environment] in
        // A cancelled sleep ends the wait, too.
        try? await environment.sleep(limit)
        outcome.yield(.failure(GameDataError(.timedOut, "the cloud has not responded within \(limit)")))
      },
    ]
    defer { for task in tasks { task.cancel() } }
    for await result in outcomes { return try result.get() }
    throw CancellationError()
  }
}
