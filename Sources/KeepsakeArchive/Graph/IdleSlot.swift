import Synchronization

/// Keeps one thing that is costly to make from one use to the next; whoever comes while it is out makes another.
struct IdleSlot<Content: AnyObject>: ~Copyable {
  /// The address of what is kept, which owns a reference to it; 0 while there is nothing.
  private let address = Atomic<UInt>(0)

  init() {}

  deinit { _ = take() }

  func take() -> Content? {
    UnsafeRawPointer(bitPattern: address.exchange(0, ordering: .acquiring)).map {
      Unmanaged<Content>.fromOpaque($0).takeRetainedValue()
    }
  }

  /// Nobody else may use it any more.
  func giveBack(_ content: Content) {
    let reference = Unmanaged.passRetained(content)
    let mine = UInt(bitPattern: reference.toOpaque())
    if !address.compareExchange(expected: 0, desired: mine, ordering: .releasing).exchanged { reference.release() }
  }
}
