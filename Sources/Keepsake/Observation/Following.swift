import Synchronization

/// The tasks of an observed object, which end with it.
final class Following: Sendable {
  private let tasks = Mutex<[Task<Void, Never>]>([])

  deinit {
    for task in tasks.withLock({ $0 }) { task.cancel() }
  }

  /// Shows each element of a sequence to its owner. The sequence is read on another thread, and the owner isn't kept.
  @MainActor
  func begin<Updates: AsyncSequence & Sendable, Owner: AnyObject & Sendable>(
    _ updates: Updates, for owner: Owner, show: @escaping @MainActor @Sendable (Owner, Updates.Element) -> Void,
    failed: @escaping @MainActor @Sendable (Owner, any Error) -> Void
  ) where Updates.Element: Sendable {
    let task = Task.detached { [weak owner] in
      do {
        for try await element in updates {
          guard let owner else { return }
          await show(owner, element)
        }
      } catch {
        guard let owner else { return }
        await failed(owner, error)
      }
    }
    tasks.withLock { $0.append(task) }
  }
}
