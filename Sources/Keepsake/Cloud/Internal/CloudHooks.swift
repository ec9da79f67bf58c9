import KeepsakeSync

/// What the rest of a game's data asks of its cloud.
///
/// A type of its own, and no lock for each function: the value of a generic type that is itself a function is wrapped once more each time that it is lent and put
/// back, until calling it takes more stack than there is.
struct CloudHooks: Sendable {
  /// Called after each commit that the cloud may have to hear of.
  var committed: @Sendable () -> Void = {}
  /// Exchanges everything with the cloud once.
  var refresh: @Sendable () async throws -> Void = {}
  /// Brings a slot's contents.
  var download: @Sendable (String) async throws -> Void = { _ in throw GameDataError.notConnected }
  /// Beyond how many bytes a save is brought only when it is asked for; nil for never.
  var largestDownload: @Sendable () -> Int? = { nil }
  /// Shows what was kept back.
  var deliver: @Sendable () throws -> Void = {}
  /// The player's devices with which of these versions each has; nil in a cloud that doesn't know.
  var devices: @Sendable ([VersionID]) async throws -> [AccountDevice]? = { _ in throw GameDataError.notConnected }
  /// What the connection is doing.
  var status: @Sendable () -> CloudStatus = { CloudStatus(phase: .off) }
}

extension GameCore {
  func didCommit() { cloud.committed() }

  var cloudStatus: CloudStatus { cloud.status() }

  /// Hears everything from the cloud. Throws why not, and `timedOut` when the time is over; what was begun goes on.
  func fetchChanges(within limit: Duration) async throws { try await ask(within: limit, cloud.refresh) }

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
