import Foundation

extension AssetLibrary {
  /// How closely `check` looks.
  public enum Check: Sendable, Hashable {
    /// Compares sizes, and hashes only files that were changed after the manifest was made. Costs one look at each file, but one that was
    /// altered under its old date and size isn't found before it is loaded.
    ///
    /// An installer that dates all files anew makes it as slow as `full`, once.
    case quick
    /// Reads and hashes every file.
    case full
  }

  /// Compares all assets with the manifest and tells everything that is wrong at once, before play.
  ///
  ///     try assets.check().throwIfUnsound()
  ///
  /// Blocks; in a task, the call with `await` stands in its place. Findings aren't thrown; `AssetError` is if the folder itself can't be read.
  ///
  /// - Parameter progress: Hears how far it is, on this thread.
  public func check(_ check: Check = .quick, progress: (AssetProgress) -> Void = { _ in }) throws -> AssetReport {
    try AssetCheck(source, check).run(isCancelled: { false }, progress)
  }

  /// The same, on a thread of its own. Cancelling the task ends it with `CancellationError`.
  public func check(
    _ check: Check = .quick, progress: @escaping @Sendable (AssetProgress) -> Void = { _ in }
  ) async throws -> AssetReport {
    let answer = AssetAnswer<AssetReport>()
    let cancelled = AssetAnswer<Void>()
    let thread = Thread { [source] in
      answer.resolve(Result { try AssetCheck(source, check).run(isCancelled: { cancelled.isResolved }, progress) })
    }
    thread.name = "keepsake check"
    thread.start()
    return try await answer.value { cancelled.resolve(.success(())) }
  }
}
