// Where programs call libcurl or libpq by themselves.
#if os(Linux) || os(macOS)
import Foundation
import Synchronization

/// A thread that can be waited for until nothing is left of it.
///
/// OpenSSL keeps something for each thread that has called it, as libcurl and libpq do, and frees that as the very last
/// thing that the thread does. If the process ends at that moment, OpenSSL frees it twice, and the process crashes.
package final class LibraryThread: Sendable {
  private final class Context: Sendable {
    let name: String
    /// Nil once it has begun, so that what it holds is let go of when it returns.
    let body: Mutex<(@Sendable () -> Void)?>
    let condition = MonotonicCondition()
    let hasReturned = Atomic(false)

    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = Mutex(body)
    }

    func run() {
      Thread.current.name = name
      do {
        let body = body.withLock { body in
          defer { body = nil }
          return body
        }
        body?()
      }
      condition.withLock {
        hasReturned.store(true, ordering: .releasing)
        condition.broadcast()
      }
    }
  }
  /// Unchecked: the system's functions for it are safe from any thread.
  private struct Handle: @unchecked Sendable {
    let thread: pthread_t
  }

  private let handle: Handle
  private let context: Context
  private let isJoined = Mutex(false)

  /// Starts the thread. Returns nil if the system can't have another one.
  ///
  /// - Parameters:
  ///   - name: For debuggers; the system shows its first 15 bytes.
  ///   - stackBytes: The size of its stack; the system's default without it.
  package init?(_ name: String, stackBytes: Int? = nil, _ body: @escaping @Sendable () -> Void) {
    let context = Context(name: name, body: body)
    guard let handle = Self.start(context, stackBytes: stackBytes) else { return nil }
    (self.handle, self.context) = (handle, context)
  }

  deinit {
    if !isJoined.withLock({ $0 }) { pthread_detach(handle.thread) }
  }

  private static func start(_ context: Context, stackBytes: Int?) -> Handle? {
    var attributes = pthread_attr_t()
    guard pthread_attr_init(&attributes) == 0 else { return nil }
    defer { pthread_attr_destroy(&attributes) }
    if let stackBytes { pthread_attr_setstacksize(&attributes, stackBytes) }
    let pointer = Unmanaged.passRetained(context)
    #if canImport(Glibc)
    var started = pthread_t()
    let result = pthread_create(&started, &attributes, { LibraryThread.run($0) }, pointer.toOpaque())
    let thread: pthread_t? = started
    #else
    var thread: pthread_t?
    let result = pthread_create(&thread, &attributes, { LibraryThread.run($0) }, pointer.toOpaque())
    #endif
    if result != 0 { pointer.release() }
    return result == 0 ? thread.map { Handle(thread: $0) } : nil
  }

  private static func run(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let context { Unmanaged<Context>.fromOpaque(context).takeRetainedValue().run() }
    return nil
  }

  /// Waits until the body has returned and nothing is left of the thread. Blocks; returns at once on the thread itself.
  ///
  /// - Parameter deadline: How long the body may take; nil for any time.
  package func join(until deadline: ContinuousClock.Instant? = nil) {
    guard pthread_equal(pthread_self(), handle.thread) == 0 else { return }
    let context = context
    let hasReturned = context.condition.withLock {
      context.condition.wait(until: deadline) { context.hasReturned.load(ordering: .acquiring) }
    }
    guard hasReturned else { return }
    isJoined.withLock { isJoined in
      if !isJoined { pthread_join(handle.thread, nil) }
      isJoined = true
    }
  }

  /// Runs `body` on a thread of its own, and returns what it returns once nothing is left of that thread.
  package static func result<Value: Sendable>(of body: @escaping @Sendable () -> Value) async -> Value? {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        let value = Mutex<Value?>(nil)
        LibraryThread("keepsake") { value.withLock { $0 = body() } }?.join()
        continuation.resume(returning: value.withLock { $0 })
      }
    }
  }
}
#endif
