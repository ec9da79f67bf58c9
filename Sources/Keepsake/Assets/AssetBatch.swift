/// Assets that are loaded together.
///
///     let batch = assets.load(level.images)
///     while !batch.isLoaded { drawBar(batch.progress.fraction) ... }      // a loop that never yields
///     try batch.wait(within: .seconds(10))                                // or blocks
///     try await batch.waitUntilLoaded()                                   // or in a task
///
/// As long as it lives, what it loaded stays in memory, unless it was loaded without pins. Letting go of it ends that; what was asked for is
/// loaded all the same. Hold it in a property of the level or the game: Swift may let go of a local constant after its last use.
/// Safe to use from any thread or actor.
public final class AssetBatch: Sendable {
  private let library: AssetLibrary
  private let id: UInt64

  init(library: AssetLibrary, id: UInt64) {
    self.library = library
    self.id = id
  }

  deinit { library.loader.release(id) }

  /// Whether everything is loaded. False for good if something failed: `isDone` tells.
  public var isLoaded: Bool {
    if case .success = library.loader.outcome(of: id) { true } else { false }
  }

  /// Whether nothing is to come any more: everything is loaded, or something failed and the rest is loaded, or it was cancelled.
  public var isDone: Bool { library.loader.outcome(of: id) != nil }

  /// Why some can't be loaded, one error for each, so far.
  public var failures: [AssetError] { library.loader.failures(of: id) }

  /// How far it is now.
  public var progress: AssetProgress { library.loader.progress(of: id) }

  /// How far it is, now and whenever it changes, until it is done. Whoever is slow misses what lies between.
  public var progressUpdates: AsyncStream<AssetProgress> { library.loader.updates(of: id) }

  /// Suspends until the batch is done, and throws if not everything is loaded: the one error, or one that counts them.
  ///
  /// Cancelling the task ends the wait with `CancellationError` and leaves the batch alone.
  public func waitUntilLoaded() async throws {
    try await library.loader.settling(of: id).value()
    try outcome()
  }

  /// Blocks until the batch is done; throws as `waitUntilLoaded` does, or `timedOut`, after which loading goes on.
  ///
  /// For loops that never yield; in a task, `waitUntilLoaded` stands in its place.
  public func wait(within limit: Duration) throws {
    let answer = library.loader.settling(of: id)
    guard answer.wait(within: limit) != nil else {
      let progress = progress
      throw AssetError(
        .timedOut, "the assets were not loaded within \(limit): \(progress.filesDone) of \(progress.filesInAll) are; loading goes on")
    }
    try outcome()
  }

  /// Loads them before whatever has a lower priority. Never lowers.
  public func raise(to priority: AssetPriority) { library.loader.raise(id, to: priority) }

  /// Gives up what isn't loaded yet, and the pins of what is; whoever waits gets `cancelled`. Does nothing once the batch is done.
  ///
  /// Who else asked for the same assets gets them.
  public func cancel() { library.loader.cancel(id) }

  private func outcome() throws {
    guard let outcome = library.loader.outcome(of: id) else { throw AssetError(.timedOut, "the assets were not loaded") }
    try outcome.get()
  }
}
