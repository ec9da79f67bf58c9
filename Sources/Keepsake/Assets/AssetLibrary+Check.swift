import Foundation

extension AssetLibrary {
  /// How thoroughly `check` works.
  public enum Check: Sendable, Hashable {
    /// Compares sizes, and hashes only files that were modified after the manifest was made. Costs one status query per
    /// file. A file that was altered without changing its date and size isn't detected before it is loaded.
    ///
    /// After an installer that sets new dates on all files, the first check is as slow as `full`.
    case quick
    /// Reads and hashes every file.
    case full
  }

  /// Compares all assets with the manifest and reports all problems together, before play.
  ///
  /// ```swift
  /// try assets.check().throwIfUnsound()
  /// ```
  ///
  /// Blocks; in a task, use the call with `await`.
  ///
  /// - Parameters:
  ///   - check: How thoroughly to check.
  ///   - progress: Called on this thread as the check proceeds.
  /// - Returns: The findings, which aren't thrown.
  /// - Throws: `AssetError` if the folder itself can't be read.
  public func check(_ check: Check = .quick, progress: (AssetProgress) -> Void = { _ in }) throws -> AssetReport {
    try AssetCheck(source, check).run(isCancelled: { false }, progress)
  }

  /// Compares all assets with the manifest on a background thread.
  ///
  /// - Parameters:
  ///   - check: How thoroughly to check.
  ///   - progress: Called on that thread as the check proceeds.
  /// - Returns: The findings, which aren't thrown.
  /// - Throws: `AssetError` if the folder itself can't be read; `CancellationError` if the task is cancelled.
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
