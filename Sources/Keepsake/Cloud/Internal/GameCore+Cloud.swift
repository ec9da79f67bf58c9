extension GameCore {
  /// Fetches everything from the cloud. Throws why not, and `timedOut` when the time is over; what was begun goes on.
  func fetchChanges(within limit: Duration) async throws { try await ask(within: limit, cloud.fetchChanges) }

  /// Has the cloud do something. Throws why it can't, and `timedOut` when the time is over.
  func ask(within limit: Duration, _ body: @escaping @Sendable () async throws -> Void) async throws {
    let (outcomes, outcome) = AsyncStream<Result<Void, any Error>>.makeStream()
    // Not a task group, which waits for its children: the first registration at a server that never answers doesn't hear that it is
    // cancelled.
    let tasks = [
      Task {
        do {
          try await body()
          outcome.yield(.success(()))
        } catch {
          outcome.yield(.failure(error))
        }
      },
      Task { [environment] in
        // A cancelled sleep is the end of waiting, too.
        try? await environment.sleep(limit)
        outcome.yield(.failure(GameDataError(.timedOut, "the cloud has not answered within \(limit)")))
      },
    ]
    defer { for task in tasks { task.cancel() } }
    for await result in outcomes { return try result.get() }
    throw CancellationError()
  }
}
