/// Assets that are loaded together.
///
///     let batch = assets.load(level.images)
///     while !batch.isLoaded { drawBar(batch.progress.fraction) ... }      // a loop that never yields
///     try batch.wait(within: .seconds(10))                                // or blocks
///     try await batch.waitUntilLoaded()                                   // or in a task
///
/// While it exists, what it loaded stays in memory, unless it was loaded without pinning. Releasing the batch ends
/// that, but what was requested is loaded anyway. Hold it in a property of the level or the game: Swift may release a
/// local constant after its last use.
/// Safe to use from any thread or actor.
public final class AssetBatch: Sendable {
  private let library: AssetLibrary
  private let id: UInt64

  init(library: AssetLibrary, id: UInt64) {
    self.library = library
    self.id = id
  }

  deinit { library.loader.release(id) }

  /// Whether everything is loaded. Stays false if something failed: see `isDone`.
  public var isLoaded: Bool {
    if case .success = library.loader.outcome(of: id) { true } else { false }
  }

  /// Whether the batch is finished: everything is loaded, or something failed and the rest is loaded, or it was
  /// cancelled.
  public var isDone: Bool { library.loader.outcome(of: id) != nil }

  /// The errors so far, one for each asset that can't be loaded.
  public var failures: [AssetError] { library.loader.failures(of: id) }

  /// The current progress.
  public var progress: AssetProgress { library.loader.progress(of: id) }

  /// The progress now and after each change, until the batch is done. A slow reader misses intermediate values.
  public var progressUpdates: AsyncStream<AssetProgress> { library.loader.updates(of: id) }

  /// Waits until the batch is done.
  ///
  /// Cancelling the task ends the wait, not the batch.
  ///
  /// - Throws: The asset's error if one asset failed, or one error with the number of failures if several did;
  ///   `CancellationError`.
  public func waitUntilLoaded() async throws {
    try await library.loader.settling(of: id).value()
    try outcome()
  }

  /// Blocks until the batch is done: for loops that never yield. In a task, use `waitUntilLoaded()`.
  ///
  /// - Parameter limit: How long to wait.
  /// - Throws: As `waitUntilLoaded()`; `AssetError` with `timedOut`, in which case loading continues.
  public func wait(within limit: Duration) throws {
    let answer = library.loader.settling(of: id)
    guard answer.wait(within: limit) != nil else {
      let progress = progress
      throw AssetError(
        .timedOut,
        """
        the assets were not loaded within \(limit): \(progress.filesDone) of \(progress.filesInAll) are; loading \
        continues
        """)
    }
    try outcome()
  }

  /// Raises the priority of the batch. Never lowers it.
  ///
  /// - Parameter priority: The new priority.
  public func raise(to priority: AssetPriority) { library.loader.raise(id, to: priority) }

  /// Cancels what isn't loaded yet, and unpins what is. Waiting callers get `cancelled`. Does nothing once the batch is
  /// done.
  ///
  /// Doesn't affect other requests for the same assets.
  public func cancel() { library.loader.cancel(id) }

  private func outcome() throws {
    guard let outcome = library.loader.outcome(of: id) else {
      throw AssetError(.timedOut, "the assets were not loaded")
    }
    try outcome.get()
  }
}
