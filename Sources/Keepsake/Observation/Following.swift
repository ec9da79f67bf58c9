import Synchronization

/// The tasks of an observed object, which end with it.
final class Following: Sendable {
  private let tasks = Mutex<[Task<Void, Never>]>([])

  deinit {
    for task in tasks.withLock({ $0 }) { task.cancel() }
  }

  /// Shows each element of a sequence to its owner. The sequence is read on another thread. The owner isn't kept, also
  /// not while an element waits for the main actor: it is looked up there.
  @MainActor
  func begin<Updates: AsyncSequence & Sendable, Owner: AnyObject & Sendable>(
    _ updates: Updates, for owner: Owner, show: @escaping @MainActor @Sendable (Owner, Updates.Element) -> Void,
    failed: @escaping @MainActor @Sendable (Owner, any Error) -> Void
  ) where Updates.Element: Sendable {
    let showIfThere: @MainActor @Sendable (Updates.Element) -> Bool = { [weak owner] element in
      guard let owner else { return false }
      show(owner, element)
      return true
    }
    let failIfThere: @MainActor @Sendable (any Error) -> Void = { [weak owner] error in
      if let owner { failed(owner, error) }
    }
    let task = Task.detached {
      do {
        for try await element in updates {
          guard await showIfThere(element) else { return }
        }
      } catch {
        await failIfThere(error)
      }
    }
    tasks.withLock { $0.append(task) }
  }
}
