import Synchronization

/// Keeps one object that is costly to create between uses. A caller that finds the slot empty creates another.
struct IdleSlot<Content: AnyObject>: ~Copyable {
  /// The address of the kept object, which owns a reference to it; 0 if there is none.
  private let address = Atomic<UInt>(0)

  init() {}

  deinit { _ = take() }

  func take() -> Content? {
    UnsafeRawPointer(bitPattern: address.exchange(0, ordering: .acquiring)).map {
      Unmanaged<Content>.fromOpaque($0).takeRetainedValue()
    }
  }

  /// Puts an object into the slot, or releases it if the slot is taken. The caller must not use it afterwards.
  func giveBack(_ content: Content) {
    let reference = Unmanaged.passRetained(content)
    let mine = UInt(bitPattern: reference.toOpaque())
    if !address.compareExchange(expected: 0, desired: mine, ordering: .releasing).exchanged { reference.release() }
  }
}
