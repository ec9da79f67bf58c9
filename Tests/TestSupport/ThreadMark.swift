#if os(Linux)
import Foundation
import Synchronization

/// Marks a thread, to see when nothing is left of it: the last thing that it does takes a moment.
package final class ThreadMark: Sendable {
  private let gone = Atomic(false)
  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key) { pointer in
      guard let pointer else { return }
      usleep(100_000)
      Unmanaged<ThreadMark>.fromOpaque(pointer).takeRetainedValue().gone.store(true, ordering: .releasing)
    }
    return key
  }()

  package init() {}

  /// Marks the thread that calls this. Another one isn't marked besides.
  package func set() {
    guard pthread_getspecific(Self.key) == nil else { return }
    pthread_setspecific(Self.key, Unmanaged.passRetained(self).toOpaque())
  }

  /// Whether a thread was marked and nothing is left of it.
  package var isGone: Bool { gone.load(ordering: .acquiring) }
}
#endif
